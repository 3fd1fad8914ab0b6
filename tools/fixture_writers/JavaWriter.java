import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Future;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.utils.AppInfoParser;

/** Plays a script of tools/make_fixtures.py with Apache Kafka's producer: JSON on standard input, JSON on output. */
public final class JavaWriter {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        JsonNode script = JSON.readTree(System.in);
        String topic = script.get("topic").asText();
        Map<String, KafkaProducer<byte[], byte[]>> producers = new HashMap<>();
        script.get("producers").properties().forEach(
            entry -> producers.put(entry.getKey(), open(script.get("bootstrap_servers").asText(), entry.getValue())));
        ObjectNode result = JSON.createObjectNode();
        result.put("version", AppInfoParser.getVersion());
        ArrayNode sent = result.putArray("sent");
        for (JsonNode step : script.get("steps")) {
            KafkaProducer<byte[], byte[]> producer = producers.get(step.get(1).asText());
            switch (step.get(0).asText()) {
                case "begin" -> producer.beginTransaction();
                case "commit" -> producer.commitTransaction();
                case "abort" -> producer.abortTransaction();
                default -> send(producer, topic, step.get(2), sent);
            }
        }
        producers.values().forEach(KafkaProducer::close);
        System.out.println(JSON.writeValueAsString(result));
    }

    private static KafkaProducer<byte[], byte[]> open(String servers, JsonNode description) {
        Map<String, Object> config = new HashMap<>();
        config.put("bootstrap.servers", servers);
        config.put("compression.type", description.get("codec").asText());
        // Longer than a step takes to hand over its records: one batch a step.
        config.put("linger.ms", 1000);
        boolean transactional = !description.get("transactional_id").isNull();
        if (transactional) {
            config.put("transactional.id", description.get("transactional_id").asText());
        }
        KafkaProducer<byte[], byte[]> producer =
            new KafkaProducer<>(config, new ByteArraySerializer(), new ByteArraySerializer());
        if (transactional) {
            producer.initTransactions();
        }
        return producer;
    }

    private static void send(KafkaProducer<byte[], byte[]> producer, String topic, JsonNode records, ArrayNode sent)
            throws Exception {
        // Else the first record would wait for metadata longer than it lingers.
        producer.partitionsFor(topic);
        List<Future<RecordMetadata>> promised = new ArrayList<>();
        for (JsonNode record : records) {
            List<Header> headers = new ArrayList<>();
            for (JsonNode header : record.get("headers")) {
                headers.add(new RecordHeader(
                    new String(bytes(header.get(0)), StandardCharsets.UTF_8), bytes(header.get(1))));
            }
            promised.add(producer.send(new ProducerRecord<>(
                topic, 0, record.get("timestamp_ms").asLong(), bytes(record.get("key")), bytes(record.get("value")),
                headers)));
        }
        producer.flush();
        for (Future<RecordMetadata> one : promised) {
            sent.addObject().put("offset", one.get().offset()).put("timestamp_ms", one.get().timestamp());
        }
    }

    private static byte[] bytes(JsonNode text) {
        return text.isNull() ? null : Base64.getDecoder().decode(text.asText());
    }
}
