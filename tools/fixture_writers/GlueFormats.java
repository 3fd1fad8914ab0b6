// Writes rows with the serializers of AWS's Glue Schema Registry, without the service: the id is given. Run from its
// source by tools/make_format_fixtures.py: JSON on standard input, JSON on standard output.

import com.amazonaws.services.schemaregistry.common.configs.GlueSchemaRegistryConfiguration;
import com.amazonaws.services.schemaregistry.serializers.SerializationDataEncoder;
import com.amazonaws.services.schemaregistry.serializers.avro.AvroSerializer;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import java.util.Base64;
import java.util.Map;
import java.util.UUID;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.io.DecoderFactory;

public final class GlueFormats {
    public static void main(String[] arguments) throws Exception {
        ObjectMapper mapper = new ObjectMapper();
        JsonNode script = mapper.readTree(System.in);
        Schema schema = new Schema.Parser().parse(script.get("schema").asText());
        GlueSchemaRegistryConfiguration settings = new GlueSchemaRegistryConfiguration(
                Map.of("region", "eu-west-1", "compression", script.get("compression").asText()));
        SerializationDataEncoder framing = new SerializationDataEncoder(settings);
        AvroSerializer serializer = new AvroSerializer();
        UUID id = UUID.fromString(script.get("id").asText());
        ArrayNode written = mapper.createArrayNode();
        for (JsonNode row : script.get("rows")) {
            GenericRecord datum = new GenericDatumReader<GenericRecord>(schema)
                    .read(null, DecoderFactory.get().jsonDecoder(schema, row.asText()));
            byte[] value = framing.write(serializer.serialize(datum), id);
            written.add(Base64.getEncoder().encodeToString(value));
        }
        System.out.println(mapper.writeValueAsString(Map.of("values", written)));
    }
}
