// Transactions as a measurement: commits a second, how long a commit takes, and how fast committed records are read.
package main

import (
	"context"
	"fmt"
	"sort"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const spread = 10 // partitions

func transactional(broker, id, topic string) *kgo.Client {
	client, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.TransactionalID(id), kgo.DefaultProduceTopic(topic),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(0), kgo.ProducerBatchCompression(kgo.NoCompression()))
	no("producer", err)
	return client
}

// One transaction of so many records over all partitions; how long its end took.
func transact(ctx context.Context, client *kgo.Client, count int, commit kgo.TransactionEndTry) time.Duration {
	no("begin", client.BeginTransaction())
	batch := make([]*kgo.Record, count)
	for i := range batch {
		batch[i] = &kgo.Record{Value: make([]byte, 100), Partition: int32(i % spread)}
	}
	no("produce", client.ProduceSync(ctx, batch...).FirstErr())
	began := time.Now()
	no("end", client.EndTransaction(ctx, commit))
	return time.Since(began)
}

func spreadTopic(ctx context.Context, broker, topic string) {
	client, err := kgo.NewClient(kgo.SeedBrokers(broker))
	no("client", err)
	defer client.Close()
	_, err = kadm.NewClient(client).CreateTopic(ctx, spread, 1, nil, topic)
	no("create "+topic, err)
}

// Prints commits a second, and the median and the 99th percentile of a commit in ms. `held`: a transaction of an hour ago is open.
func transactionSpeed(broker, topic string, producers, count int, held bool) {
	ctx := context.Background()
	spreadTopic(ctx, broker, topic)
	if held {
		open := transactional(broker, topic+"-open", topic)
		defer open.Close()
		no("begin", open.BeginTransaction())
		old := &kgo.Record{Value: []byte("open"), Partition: 0, Timestamp: time.Now().Add(-time.Hour)}
		no("open", open.ProduceSync(ctx, old).FirstErr())
	}
	clients := make([]*kgo.Client, producers)
	for i := range clients {
		clients[i] = transactional(broker, fmt.Sprint(topic, "-", i), topic)
		defer clients[i].Close()
		for n := 0; n < 20; n++ {
			transact(ctx, clients[i], 100, kgo.TryCommit)
		}
	}
	var lock sync.Mutex
	var times []time.Duration
	var running sync.WaitGroup
	began := time.Now()
	for _, client := range clients {
		running.Add(1)
		go func() {
			defer running.Done()
			mine := make([]time.Duration, 0, count)
			for n := 0; n < count; n++ {
				mine = append(mine, transact(ctx, client, 100, kgo.TryCommit))
			}
			lock.Lock()
			times = append(times, mine...)
			lock.Unlock()
		}()
	}
	running.Wait()
	took := time.Since(began).Seconds()
	sort.Slice(times, func(a, b int) bool { return times[a] < times[b] })
	ms := func(q float64) float64 { return float64(times[int(q*float64(len(times)-1))].Microseconds()) / 1000 }
	fmt.Println(float64(producers*count)/took, ms(0.5), ms(0.99))
}

// Transactions of 100 records, every second one aborted; then prints committed records read a second.
func transactionRead(broker, topic string, count int) {
	ctx := context.Background()
	spreadTopic(ctx, broker, topic)
	client := transactional(broker, topic, topic)
	for n := 0; n < count; n++ {
		transact(ctx, client, 100, kgo.TransactionEndTry(n%2 == 0))
	}
	client.Close()
	read := func() float64 {
		reader, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeTopics(topic),
			kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
		no("reader", err)
		defer reader.Close()
		began, seen := time.Now(), 0
		for seen < count*50 {
			fetches := reader.PollFetches(ctx)
			no("read", fetches.Err())
			seen += fetches.NumRecords()
		}
		check("committed", seen == count*50, seen)
		return float64(seen) / time.Since(began).Seconds()
	}
	read()
	best := 0.0
	for n := 0; n < 3; n++ {
		best = max(best, read())
	}
	fmt.Println(best)
}
