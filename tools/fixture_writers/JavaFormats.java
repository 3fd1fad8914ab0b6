// Writes rows with the serializers of Java: Avro's encoder, protobuf-java, Jackson. Run from its source by
// tools/make_format_fixtures.py: JSON on standard input, JSON on standard output.

import com.fasterxml.jackson.core.json.JsonWriteFeature;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.google.protobuf.DescriptorProtos.FileDescriptorProto;
import com.google.protobuf.DescriptorProtos.FileDescriptorSet;
import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.Descriptors.FileDescriptor;
import com.google.protobuf.DynamicMessage;
import com.google.protobuf.util.JsonFormat;
import java.io.ByteArrayOutputStream;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.DecoderFactory;
import org.apache.avro.io.EncoderFactory;

public final class JavaFormats {
    public static void main(String[] arguments) throws Exception {
        ObjectMapper mapper = JsonMapper.builder()
                .enable(DeserializationFeature.USE_BIG_DECIMAL_FOR_FLOATS)
                .nodeFactory(JsonNodeFactory.withExactBigDecimals(true))
                .build();
        JsonNode script = mapper.readTree(System.in);
        ArrayNode written = mapper.createArrayNode();
        for (JsonNode row : script.get("rows")) {
            byte[] value = switch (script.get("writer").asText()) {
                case "avro" -> avro(script, row.asText(), false);
                case "avro-blocks" -> avro(script, row.asText(), true);
                case "protobuf" -> protobuf(script, row.asText());
                case "json" -> mapper.writeValueAsBytes(row);
                case "json-pretty" -> mapper.writerWithDefaultPrettyPrinter().writeValueAsBytes(row);
                case "json-ascii" -> mapper.writer().with(JsonWriteFeature.ESCAPE_NON_ASCII).writeValueAsBytes(row);
                default -> throw new IllegalArgumentException("no such writer");
            };
            written.add(Base64.getEncoder().encodeToString(value));
        }
        System.out.println(mapper.writeValueAsString(Map.of("values", written)));
    }

    /** Rows come in Avro's JSON encoding. Blocks: lists and maps in blocks of a few items, each with its size. */
    private static byte[] avro(JsonNode script, String row, boolean blocks) throws Exception {
        Schema schema = new Schema.Parser().parse(script.get("schema").asText());
        Object datum = new GenericDatumReader<Object>(schema)
                .read(null, DecoderFactory.get().jsonDecoder(schema, row));
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        BinaryEncoder encoder = blocks
                ? new EncoderFactory().configureBlockSize(64).blockingBinaryEncoder(out, null)
                : EncoderFactory.get().binaryEncoder(out, null);
        new GenericDatumWriter<Object>(schema).write(datum, encoder);
        encoder.flush();
        return out.toByteArray();
    }

    /** Rows come in Protobuf's JSON mapping. */
    private static byte[] protobuf(JsonNode script, String row) throws Exception {
        FileDescriptorSet files = FileDescriptorSet.parseFrom(Base64.getDecoder().decode(script.get("schema").asText()));
        Map<String, FileDescriptor> built = new HashMap<>();
        FileDescriptor last = null;
        for (FileDescriptorProto file : files.getFileList()) {
            List<FileDescriptor> imports = new ArrayList<>();
            for (String name : file.getDependencyList()) {
                imports.add(built.get(name));
            }
            last = FileDescriptor.buildFrom(file, imports.toArray(new FileDescriptor[0]));
            built.put(file.getName(), last);
        }
        Descriptor message = last.findMessageTypeByName(script.get("message").asText());
        DynamicMessage.Builder builder = DynamicMessage.newBuilder(message);
        JsonFormat.parser().merge(row, builder);
        return builder.build().toByteArray();
    }
}
