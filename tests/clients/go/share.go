// Share groups with franz-go: what a queue promises, and how fast it is.
package main

import (
	"context"
	"fmt"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// A group that begins at the start of its topics.
func earliest(client *kgo.Client, group string) {
	value := "earliest"
	request := kmsg.NewPtrIncrementalAlterConfigsRequest()
	resource := kmsg.NewIncrementalAlterConfigsRequestResource()
	resource.ResourceType = kmsg.ConfigResourceType(32)
	resource.ResourceName = group
	config := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
	config.Name = "share.auto.offset.reset"
	config.Value = &value
	resource.Configs = append(resource.Configs, config)
	request.Resources = append(request.Resources, resource)
	response, err := request.RequestWith(context.Background(), client)
	no("configure", err)
	check("configure", response.Resources[0].ErrorCode == 0, response.Resources[0].ErrorCode)
}

func queue(broker, topic string, parts int32, count, size int) {
	client, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.DefaultProduceTopic(topic), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchMaxBytes(16<<10))
	no("client", err)
	defer client.Close()
	_, err = kadm.NewClient(client).CreateTopic(context.Background(), parts, 1, nil, topic)
	no("create "+topic, err)
	earliest(client, topic)
	for n := 0; n < count; n++ {
		value := make([]byte, size)
		copy(value, fmt.Sprint(n))
		client.Produce(context.Background(), &kgo.Record{Value: value, Partition: int32(n) % parts}, nil)
	}
	no("flush", client.Flush(context.Background()))
}

func sharer(broker, topic string, more ...kgo.Opt) *kgo.Client {
	options := append([]kgo.Opt{kgo.SeedBrokers(broker), kgo.ShareGroup(topic), kgo.ConsumeTopics(topic), kgo.FetchMaxWait(500 * time.Millisecond)}, more...)
	client, err := kgo.NewClient(options...)
	no("sharer", err)
	return client
}

// Members read a queue between them, and give every tenth record back the first time; each is accepted by someone at the end.
func franzShare(broker string, members int, parts int32) {
	topic := fmt.Sprintf("franz-share-%d-%d", members, parts)
	queue(broker, topic, parts, records, 20)
	var accepted sync.Map
	var count, again atomic.Int64
	ctx, stop := context.WithTimeout(context.Background(), 60*time.Second)
	defer stop()
	var running sync.WaitGroup
	for i := 0; i < members; i++ {
		running.Add(1)
		go func() {
			defer running.Done()
			client := sharer(broker, topic)
			defer client.Close()
			for count.Load() < records && ctx.Err() == nil {
				waiting, cancel := context.WithTimeout(ctx, time.Second)
				fetches := client.PollFetches(waiting)
				cancel()
				fetches.EachRecord(func(r *kgo.Record) {
					if r.Offset%10 == 3 && r.DeliveryCount() == 1 {
						client.MarkAcks(kgo.AckRelease, r)
						again.Add(1)
						return
					}
					client.MarkAcks(kgo.AckAccept, r)
					if _, was := accepted.LoadOrStore(fmt.Sprint(r.Partition, "/", r.Offset), true); !was {
						count.Add(1)
					}
				})
				no("acknowledge", client.FlushAcks(ctx))
			}
		}()
	}
	running.Wait()
	check("everything is accepted", count.Load() == records, count.Load())
	check("what was given back came again", again.Load() > 0)
}

// Records per second of members that read a queue of count records; explicit: acknowledged one by one, every tenth released once.
func shareSpeed(broker, topic string, members, count int, explicit bool) {
	queue(broker, topic, 1, count, 100)
	var done atomic.Int64
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var first atomic.Int64
	var running sync.WaitGroup
	for i := 0; i < members; i++ {
		running.Add(1)
		go func() {
			defer running.Done()
			client := sharer(broker, topic)
			defer client.Close()
			for ctx.Err() == nil {
				fetches := client.PollFetches(ctx)
				got := 0
				fetches.EachRecord(func(r *kgo.Record) {
					if explicit && r.Offset%10 == 3 && r.DeliveryCount() == 1 {
						client.MarkAcks(kgo.AckRelease, r)
						return
					}
					if explicit {
						client.MarkAcks(kgo.AckAccept, r)
					}
					got++
				})
				if got > 0 {
					first.CompareAndSwap(0, time.Now().UnixNano())
				}
				if done.Add(int64(got)) >= int64(count) {
					stop()
				}
			}
		}()
	}
	<-ctx.Done()
	took := time.Since(time.Unix(0, first.Load()))
	running.Wait()
	fmt.Printf("%.0f\n", float64(count)/took.Seconds())
}

// Milliseconds from the moment a record is produced until a member has it, one at a time: the median.
func shareLatency(broker, topic string, count int) {
	queue(broker, topic, 1, 1, 100)
	producer, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.DefaultProduceTopic(topic), kgo.ProducerLinger(0))
	no("producer", err)
	defer producer.Close()
	client := sharer(broker, topic)
	defer client.Close()
	got := make(chan bool, 1)
	go func() {
		for {
			fetches := client.PollFetches(context.Background())
			if fetches.IsClientClosed() {
				return
			}
			fetches.EachRecord(func(*kgo.Record) { got <- true })
		}
	}()
	<-got
	var took []float64
	for n := 0; n < count; n++ {
		began := time.Now()
		producer.Produce(context.Background(), &kgo.Record{Value: make([]byte, 100)}, nil)
		<-got
		took = append(took, float64(time.Since(began).Microseconds())/1000)
	}
	sort.Float64s(took)
	fmt.Printf("%.3f\n", took[len(took)/2])
}
