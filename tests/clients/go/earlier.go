package main

import (
	"fmt"
	"time"

	"github.com/IBM/sarama"
)

// earlier writes with each codec of a version of Kafka, reads from the beginning and commits, with the requests of that version.
func earlier(broker, topic, version string) {
	v, err := sarama.ParseKafkaVersion(version)
	no("version", err)
	codecs := []sarama.CompressionCodec{sarama.CompressionNone, sarama.CompressionGZIP, sarama.CompressionSnappy}
	if v.IsAtLeast(sarama.V0_10_0_0) {
		codecs = append(codecs, sarama.CompressionLZ4)
	}
	if v.IsAtLeast(sarama.V2_1_0_0) {
		codecs = append(codecs, sarama.CompressionZSTD)
	}
	total := 0
	for _, codec := range codecs {
		config := sarama.NewConfig()
		config.Version = v
		config.Producer.Compression = codec
		config.Producer.Return.Successes = true
		config.Producer.RequiredAcks = sarama.WaitForAll
		config.Producer.Partitioner = sarama.NewManualPartitioner
		producer, err := sarama.NewSyncProducer([]string{broker}, config)
		no("producer", err)
		for n := 0; n < 3; n++ {
			var batch []*sarama.ProducerMessage
			for i := 0; i < 10; i++ {
				batch = append(batch, &sarama.ProducerMessage{Topic: topic, Key: sarama.StringEncoder("k"), Value: sarama.StringEncoder(fmt.Sprint(total))})
				total++
			}
			no("send", producer.SendMessages(batch))
		}
		no("close", producer.Close())
	}
	config := sarama.NewConfig()
	config.Version = v
	config.Consumer.Return.Errors = true
	client, err := sarama.NewClient([]string{broker}, config)
	no("client", err)
	oldest, err := client.GetOffset(topic, 0, sarama.OffsetOldest)
	no("oldest", err)
	newest, err := client.GetOffset(topic, 0, sarama.OffsetNewest)
	no("newest", err)
	check("offsets", oldest == 0 && newest == int64(total), oldest, newest)
	consumer, err := sarama.NewConsumerFromClient(client)
	no("consumer", err)
	partition, err := consumer.ConsumePartition(topic, 0, 0)
	no("partition", err)
	for i := 0; i < total; i++ {
		select {
		case m := <-partition.Messages():
			check("message", m.Offset == int64(i) && string(m.Value) == fmt.Sprint(i), i, m.Offset, string(m.Value))
		case e := <-partition.Errors():
			no("read", e)
		case <-time.After(20 * time.Second):
			check("all is read", false, i)
		}
	}
	for _, expected := range []int64{-1, int64(total)} {
		offsets, err := sarama.NewOffsetManagerFromClient("g-"+topic, client)
		no("offsets", err)
		managed, err := offsets.ManagePartition(topic, 0)
		no("managed", err)
		next, _ := managed.NextOffset()
		check("committed", next == expected, next)
		managed.MarkOffset(int64(total), "metadata")
		offsets.Commit()
		managed.AsyncClose()
		for e := range managed.Errors() {
			no("commit", e)
		}
		no("close", offsets.Close())
	}
	no("close", client.Close())
}
