// One idempotent producer and one consumer of one partition as a measurement, in MB of values a second.
package main

import (
	"bytes"
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Prints what was produced and then what was read a second. `size`: of a value; `batch`: the most that a batch may have.
func throughput(broker, topic string, count, size, batch int) {
	ctx := context.Background()
	producer, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.DefaultProduceTopic(topic), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.ProducerBatchMaxBytes(int32(batch)), kgo.ProducerLinger(5*time.Millisecond),
		kgo.MaxBufferedRecords(50_000))
	no("producer", err)
	value := bytes.Repeat([]byte("v"), size)
	produce := func(count int) float64 {
		var failed atomic.Pointer[error]
		began := time.Now()
		for n := 0; n < count; n++ {
			producer.Produce(ctx, &kgo.Record{Value: value}, func(_ *kgo.Record, err error) {
				if err != nil {
					failed.Store(&err)
				}
			})
		}
		no("flush", producer.Flush(ctx))
		if err := failed.Load(); err != nil {
			no("produce", *err)
		}
		return float64(count*size) / 1e6 / time.Since(began).Seconds()
	}
	warm := count / 5
	produce(warm)
	produced := produce(count)
	producer.Close()
	consumer, err := kgo.NewClient(kgo.SeedBrokers(broker),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}))
	no("consumer", err)
	defer consumer.Close()
	got, began := 0, time.Now()
	for got < warm+count {
		fetches := consumer.PollFetches(ctx)
		no("fetch", fetches.Err())
		got += fetches.NumRecords()
	}
	fmt.Println(produced, float64(got*size)/1e6/time.Since(began).Seconds())
}
