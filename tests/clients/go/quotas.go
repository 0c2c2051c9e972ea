package main

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"
	"github.com/rcrowley/go-metrics"
	"github.com/twmb/franz-go/pkg/kgo"
)

type throttled struct{ longest atomic.Int64 }

func (t *throttled) OnBrokerThrottle(_ kgo.BrokerMetadata, interval time.Duration, _ bool) {
	if ms := interval.Milliseconds(); ms > t.longest.Load() {
		t.longest.Store(ms)
	}
}

// One batch beyond the quota: prints the throttle time that the client reports.
func franzQuota(broker, topic string, size int) {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	hook := &throttled{}
	client, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.WithHooks(hook), kgo.ProducerBatchCompression(kgo.NoCompression()))
	no("franz client", err)
	no("produce", client.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: make([]byte, size)}).FirstErr())
	client.Close()
	fmt.Println(hook.longest.Load())
}

// The same with sarama, which has a histogram of throttle times.
func saramaQuota(broker, topic string, size int) {
	config := sarama.NewConfig()
	config.Version = sarama.V3_6_0_0
	config.Producer.Return.Successes = true
	config.Producer.RequiredAcks = sarama.WaitForAll
	producer, err := sarama.NewSyncProducer([]string{broker}, config)
	no("sarama producer", err)
	_, _, err = producer.SendMessage(&sarama.ProducerMessage{Topic: topic, Value: sarama.ByteEncoder(make([]byte, size))})
	no("sarama produce", err)
	longest := int64(0)
	config.MetricRegistry.Each(func(name string, found any) {
		if histogram, ok := found.(metrics.Histogram); ok && strings.HasPrefix(name, "throttle-time-in-ms") {
			longest = max(longest, histogram.Max())
		}
	})
	no("sarama close", producer.Close())
	fmt.Println(longest)
}
