// Two Go clients, franz-go and sarama, against the broker of which the address is the first argument.
// Every check ends the program when it fails; the last line is "ok".
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

func check(what string, ok bool, more ...any) {
	if !ok {
		fmt.Println("failed:", what, more)
		os.Exit(1)
	}
}

func no(what string, err error) { check(what, err == nil, err) }

const records = 300

var began = time.Now().Add(-time.Minute).Truncate(time.Millisecond)

func at(n int) time.Time { return began.Add(time.Duration(n) * time.Millisecond) }

func franz(broker string) {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	codecs := map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
		"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(broker))
	no("franz client", err)
	admin := kadm.NewClient(client)
	for name, codec := range codecs {
		for _, mode := range []string{"idempotent", "all", "leader", "none"} {
			topic := "franz-" + name + "-" + mode
			_, err := admin.CreateTopic(ctx, 2, 1, nil, topic)
			no("create", err)
			options := []kgo.Opt{
				kgo.SeedBrokers(broker), kgo.ProducerBatchCompression(codec), kgo.DefaultProduceTopic(topic),
				kgo.RecordPartitioner(kgo.ManualPartitioner()),
			}
			switch mode {
			case "all":
				options = append(options, kgo.DisableIdempotentWrite(), kgo.RequiredAcks(kgo.AllISRAcks()))
			case "leader":
				options = append(options, kgo.DisableIdempotentWrite(), kgo.RequiredAcks(kgo.LeaderAck()))
			case "none":
				options = append(options, kgo.DisableIdempotentWrite(), kgo.RequiredAcks(kgo.NoAck()))
			}
			producer, err := kgo.NewClient(options...)
			no("producer", err)
			for n := 0; n < records; n++ {
				producer.Produce(ctx, &kgo.Record{Value: []byte(fmt.Sprint(n)), Partition: 1, Timestamp: at(n)}, func(_ *kgo.Record, err error) {
					no("produce "+topic, err)
				})
			}
			no("flush", producer.Flush(ctx))
			producer.Close()
			franzRead(ctx, broker, topic, 0, records)
		}
	}
	listed, err := admin.ListOffsetsAfterMilli(ctx, at(120).UnixMilli(), "franz-gzip-all")
	no("list offsets", err)
	found, _ := listed.Lookup("franz-gzip-all", 1)
	check("offset by time", found.Offset == 120, found)
	franzRead(ctx, broker, "franz-gzip-all", 250, records-250)
	franzErrors(ctx, broker, client)
	client.Close()
}

func franzRead(ctx context.Context, broker, topic string, from int64, count int) {
	consumer, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{
		topic: {1: kgo.NewOffset().At(from)},
	}))
	no("consumer", err)
	defer consumer.Close()
	for next := from; next < from+int64(count); {
		fetches := consumer.PollFetches(ctx)
		no("fetch", fetches.Err())
		fetches.EachRecord(func(r *kgo.Record) {
			check("order in "+topic, r.Offset == next && string(r.Value) == fmt.Sprint(next), r.Offset, next)
			next++
		})
	}
}

func franzErrors(ctx context.Context, broker string, client *kgo.Client) {
	big, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.ProducerBatchMaxBytes(5<<20), kgo.ProducerBatchCompression(kgo.NoCompression()))
	no("big client", err)
	err = big.ProduceSync(ctx, &kgo.Record{Topic: "franz-gzip-all", Value: make([]byte, 2<<20)}).FirstErr()
	check("too large", errors.Is(err, kerr.MessageTooLarge), err)
	big.Close()
	unknown, err := kadm.NewClient(client).ListTopics(ctx, "no-such-topic")
	no("list topics", err)
	check("unknown topic", errors.Is(unknown["no-such-topic"].Err, kerr.UnknownTopicOrPartition), unknown["no-such-topic"].Err)
	err = client.ProduceSync(ctx, &kgo.Record{Topic: "no such topic!", Value: []byte("x")}).FirstErr()
	check("invalid topic", err != nil, err)
	lost, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{"franz-gzip-all": {0: kgo.NewOffset().At(99999)}}))
	no("lost client", err)
	defer lost.Close()
	check("out of range", errors.Is(lost.PollFetches(ctx).Err0(), kerr.OffsetOutOfRange))
}

func saramas(broker string) {
	codecs := map[string]sarama.CompressionCodec{
		"none": sarama.CompressionNone, "gzip": sarama.CompressionGZIP, "snappy": sarama.CompressionSnappy,
		"lz4": sarama.CompressionLZ4, "zstd": sarama.CompressionZSTD,
	}
	for name, codec := range codecs {
		for mode, acks := range map[string]sarama.RequiredAcks{
			"idempotent": sarama.WaitForAll, "all": sarama.WaitForAll, "leader": sarama.WaitForLocal, "none": sarama.NoResponse,
		} {
			idempotent := mode == "idempotent"
			topic := fmt.Sprintf("sarama-%s-%s", name, mode)
			config := sarama.NewConfig()
			config.Version = sarama.V3_6_0_0
			config.Producer.Compression = codec
			config.Producer.RequiredAcks = acks
			config.Producer.Return.Successes = true
			config.Producer.Partitioner = sarama.NewManualPartitioner
			config.Producer.Idempotent = idempotent
			if idempotent {
				config.Net.MaxOpenRequests = 1
			}
			admin, err := sarama.NewClusterAdmin([]string{broker}, config)
			no("sarama admin", err)
			no("sarama create", admin.CreateTopic(topic, &sarama.TopicDetail{NumPartitions: 2, ReplicationFactor: 1}, false))
			err = admin.CreateTopic(topic, &sarama.TopicDetail{NumPartitions: 2, ReplicationFactor: 1}, false)
			check("sarama exists", errors.Is(err, sarama.ErrTopicAlreadyExists), err)
			producer, err := sarama.NewSyncProducer([]string{broker}, config)
			no("sarama producer", err)
			batch := make([]*sarama.ProducerMessage, records)
			for n := range batch {
				batch[n] = &sarama.ProducerMessage{Topic: topic, Partition: 1, Value: sarama.StringEncoder(fmt.Sprint(n)), Timestamp: at(n)}
			}
			no("sarama produce", producer.SendMessages(batch))
			no("sarama close", producer.Close())
			saramaRead(broker, topic, config)
			no("sarama admin close", admin.Close())
		}
	}
	saramaErrors(broker)
}

func saramaErrors(broker string) {
	config := sarama.NewConfig()
	config.Version = sarama.V3_6_0_0
	config.Metadata.AllowAutoTopicCreation = false
	config.Metadata.Retry.Max = 0
	config.Producer.Return.Successes = true
	config.Producer.MaxMessageBytes = 5 << 20
	client, err := sarama.NewClient([]string{broker}, config)
	no("sarama client", err)
	defer client.Close()
	_, err = client.Partitions("no-such-topic")
	check("sarama unknown topic", errors.Is(err, sarama.ErrUnknownTopicOrPartition), err)
	producer, err := sarama.NewSyncProducerFromClient(client)
	no("sarama producer", err)
	defer producer.Close()
	_, _, err = producer.SendMessage(&sarama.ProducerMessage{Topic: "sarama-none-all", Value: sarama.ByteEncoder(make([]byte, 2<<20))})
	check("sarama too large", errors.Is(err, sarama.ErrMessageSizeTooLarge), err)
}

func saramaRead(broker, topic string, config *sarama.Config) {
	client, err := sarama.NewClient([]string{broker}, config)
	no("sarama client", err)
	defer client.Close()
	consumer, err := sarama.NewConsumerFromClient(client)
	no("sarama consumer", err)
	partition, err := consumer.ConsumePartition(topic, 1, 0)
	no("sarama partition", err)
	for n := 0; n < records; n++ {
		message := <-partition.Messages()
		check("sarama order", message.Offset == int64(n) && string(message.Value) == fmt.Sprint(n), message.Offset)
	}
	no("sarama close", partition.Close())
	offset, err := client.GetOffset(topic, 1, at(100).UnixMilli())
	no("sarama offset", err)
	check("sarama offset by time", offset == 100, offset)
	partition, err = consumer.ConsumePartition(topic, 1, 250)
	no("sarama partition from an offset", err)
	message := <-partition.Messages()
	check("sarama from an offset", message.Offset == 250 && string(message.Value) == "250", message.Offset)
	no("sarama close", partition.Close())
	_, err = consumer.ConsumePartition(topic, 0, 4711)
	check("sarama out of range", errors.Is(err, sarama.ErrOffsetOutOfRange), err)
}

func number(text string) int {
	value, err := strconv.Atoi(text)
	no(text, err)
	return value
}

func main() {
	if os.Args[1] == "examined" {
		examined(os.Args[2], os.Args[3:])
		return
	}
	broker := os.Args[1]
	what := "clients"
	if len(os.Args) > 2 {
		what = os.Args[2]
	}
	switch what {
	case "clients":
		franz(broker)
		saramas(broker)
	case "earlier":
		earlier(broker, os.Args[3], os.Args[4])
	case "groups":
		franzGroup(broker, false, "classic")
		franzGroup(broker, true, "consumer")
		saramaGroup(broker)
	case "sasl":
		if len(os.Args) > 5 {
			overTLS = tlsConfig("", os.Args[5], "")
		}
		franzSasl(broker, os.Args[3], os.Args[4])
		saramaSasl(broker, os.Args[3], os.Args[4])
	case "kerberos":
		kerberosClients(broker, os.Args[3], os.Args[4], os.Args[5], os.Args[6])
	case "oauth":
		oauthClients(broker, os.Args[3], os.Args[4], os.Args[5])
	case "quota":
		franzQuota(broker, os.Args[3], number(os.Args[4]))
	case "sarama-quota":
		saramaQuota(broker, os.Args[3], number(os.Args[4]))
	case "franz-faults":
		franzFaults(os.Args[3], broker, os.Args[4], os.Args[5], number(os.Args[6]))
	case "sarama-faults":
		saramaFaults(os.Args[3], broker, os.Args[4], os.Args[5], number(os.Args[6]))
	case "share":
		franzShare(broker, 1, 1)
		franzShare(broker, 20, 1)
		franzShare(broker, 3, 4)
	case "transactions":
		franzSessions(broker)
		franzFencing(broker)
		saramaTransactions(broker)
	case "franz-work":
		franzGroup(broker, false, "classic")
		franzGroup(broker, true, "consumer")
		franzShare(broker, 3, 4)
		franzSessions(broker)
		franzFencing(broker)
		franzTooLarge(broker)
		franzAstray(broker)
		franzTwins(broker)
		franzStays(broker)
		franzRenews(broker)
	case "sarama-work":
		saramas(broker)
		saramaGroup(broker)
		saramaTransactions(broker)
		saramaTooLarge(broker)
		saramaAstray(broker)
	case "franz-errors":
		franzCodes(broker, login{os.Args[3], os.Args[4], os.Args[5]})
	case "franz-telemetry":
		franzTelemetry(broker, os.Args[3], os.Args[4:])
	case "sarama-errors":
		saramaCodes(broker, login{os.Args[3], os.Args[4], os.Args[5]})
	case "throughput":
		throughput(broker, os.Args[3], number(os.Args[4]), number(os.Args[5]), number(os.Args[6]))
	case "token":
		franzToken(broker, os.Args[3], os.Args[4])
	case "tls":
		tlsClients(broker, os.Args[3], os.Args[4])
	case "txn-speed":
		transactionSpeed(broker, os.Args[3], number(os.Args[4]), number(os.Args[5]), os.Args[6] == "held")
	case "txn-read":
		transactionRead(broker, os.Args[3], number(os.Args[4]))
	case "share-speed":
		shareSpeed(broker, os.Args[3], number(os.Args[4]), number(os.Args[5]), os.Args[6] == "explicit")
	case "share-latency":
		shareLatency(broker, os.Args[3], number(os.Args[4]))
	case "settle":
		settle(broker, os.Args[3] == "consumer", 50, 100, os.Args[4])
	}
	fmt.Println("ok")
}
