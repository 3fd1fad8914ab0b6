// Writes rows with Apicurio's serializer for Avro, against a registry that knows one schema. Run from its source by
// tools/make_format_fixtures.py: JSON on standard input, JSON on standard output.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import io.apicurio.registry.rest.client.RegistryClient;
import io.apicurio.registry.rest.v2.beans.ArtifactMetaData;
import io.apicurio.registry.serde.avro.AvroKafkaSerializer;
import java.io.ByteArrayInputStream;
import java.io.InputStream;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Map;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.io.DecoderFactory;

public final class ApicurioFormats {
    public static void main(String[] arguments) throws Exception {
        ObjectMapper mapper = new ObjectMapper();
        JsonNode script = mapper.readTree(System.in);
        String text = script.get("schema").asText();
        ArtifactMetaData found = new ArtifactMetaData();
        found.setContentId(script.get("contentId").asLong());
        found.setGroupId("default");
        found.setId("orders-value");
        found.setVersion("1");
        found.setType("AVRO");
        InvocationHandler answers = (proxy, method, given) -> {
            if (method.getReturnType() == ArtifactMetaData.class) {
                return found;
            }
            if (method.getReturnType() == InputStream.class) {
                return new ByteArrayInputStream(text.getBytes(StandardCharsets.UTF_8));
            }
            if (method.getName().equals("close")) {
                return null;
            }
            throw new UnsupportedOperationException(method.toString());
        };
        RegistryClient registry = (RegistryClient) Proxy.newProxyInstance(
                ApicurioFormats.class.getClassLoader(), new Class<?>[] {RegistryClient.class}, answers);
        Schema schema = new Schema.Parser().parse(text);
        ArrayNode written = mapper.createArrayNode();
        try (AvroKafkaSerializer<GenericRecord> serializer = new AvroKafkaSerializer<>(registry)) {
            serializer.configure(
                    Map.of(
                            "apicurio.registry.auto-register", "true",
                            "apicurio.registry.id-handler", "io.apicurio.registry.serde.Legacy4ByteIdHandler",
                            "apicurio.registry.use-id", "contentId",
                            "apicurio.registry.headers.enabled", "false"),
                    false);
            for (JsonNode row : script.get("rows")) {
                GenericRecord datum = new GenericDatumReader<GenericRecord>(schema)
                        .read(null, DecoderFactory.get().jsonDecoder(schema, row.asText()));
                written.add(Base64.getEncoder().encodeToString(serializer.serialize("orders", datum)));
            }
        }
        System.out.println(mapper.writeValueAsString(Map.of("values", written)));
    }
}
