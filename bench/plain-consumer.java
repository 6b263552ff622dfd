import java.lang.management.ManagementFactory;
import java.time.Duration;
import java.util.List;
import java.util.Properties;
import java.util.UUID;
import org.apache.kafka.clients.consumer.KafkaConsumer;

/** Reads so many records of a topic, read committed, and does nothing with them. Prints one line of JSON. */
class PlainConsumer {
    public static void main(String[] args) {
        String brokers = args[0];
        String topic = args[1];
        long wanted = Long.parseLong(args[2]);
        Properties settings = new Properties();
        settings.put("bootstrap.servers", brokers);
        settings.put("group.id", "plain-consumer-" + UUID.randomUUID());
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", "false");
        settings.put("isolation.level", "read_committed");
        settings.put("key.deserializer", "org.apache.kafka.common.serialization.ByteArrayDeserializer");
        settings.put("value.deserializer", "org.apache.kafka.common.serialization.ByteArrayDeserializer");
        long seen = 0;
        long fifthAt = 0;
        long fifthSeen = 0;
        long endAt = 0;
        long giveUpAt = System.nanoTime() + Duration.ofSeconds(60).toNanos();
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings)) {
            consumer.subscribe(List.of(topic));
            while (seen < wanted && System.nanoTime() < giveUpAt) {
                seen += consumer.poll(Duration.ofMillis(200)).count();
                endAt = System.nanoTime();
                if (fifthAt == 0 && seen >= wanted / 5) {
                    fifthAt = endAt;
                    fifthSeen = seen;
                }
            }
        }
        double seconds = (endAt - fifthAt) / 1e9;
        double cpu = ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean())
            .getProcessCpuTime() / 1e9;
        System.out.printf(
            java.util.Locale.ROOT,
            "{\"records\":%d,\"steadyPerSecond\":%.0f,\"cpuSeconds\":%.3f}%n",
            seen, (seen - fifthSeen) / seconds, cpu);
    }
}
