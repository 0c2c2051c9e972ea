// Consumers in groups: franz-go in both protocols, sarama. And, as a measurement, how long many of them take until everyone is assigned.
package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const partitions = 6

// In this context franz-go speaks KIP-848, which it does not by itself yet.
func nextGeneration(on bool) context.Context {
	if !on {
		return context.Background()
	}
	return context.WithValue(context.Background(), "opt_in_kafka_next_gen_balancer_beta", true)
}

func fill(broker, topic string, count int) {
	client, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.DefaultProduceTopic(topic))
	no("client", err)
	defer client.Close()
	_, err = kadm.NewClient(client).CreateTopic(context.Background(), partitions, 1, nil, topic)
	no("create "+topic, err)
	for n := 0; n < count; n++ {
		client.Produce(context.Background(), &kgo.Record{Key: []byte(fmt.Sprint(n)), Value: []byte(fmt.Sprint(n))}, nil)
	}
	no("flush", client.Flush(context.Background()))
}

// Three members read a topic between them, one leaves, the others read on; what was committed is the end.
func franzGroup(broker string, next bool, name string) {
	topic, group := "franz-"+name, "franz-"+name
	fill(broker, topic, records)
	var seen sync.Map
	var count atomic.Int64
	members := make([]*kgo.Client, 3)
	var running sync.WaitGroup
	for i := range members {
		client, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.WithContext(nextGeneration(next)),
			kgo.HeartbeatInterval(100*time.Millisecond), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll())
		no("member", err)
		members[i] = client
		running.Add(1)
		go func() {
			defer running.Done()
			for {
				fetches := client.PollFetches(context.Background())
				if fetches.IsClientClosed() {
					return
				}
				fetches.EachRecord(func(r *kgo.Record) {
					if _, was := seen.LoadOrStore(string(r.Value), true); !was {
						count.Add(1)
					}
				})
				_ = client.CommitUncommittedOffsets(context.Background())
				client.AllowRebalance()
			}
		}()
	}
	wait(name+": all records", func() bool { return count.Load() == records })
	members[0].CloseAllowingRebalance()
	more, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.DefaultProduceTopic(topic))
	no("client", err)
	for n := records; n < 2*records; n++ {
		more.Produce(context.Background(), &kgo.Record{Key: []byte(fmt.Sprint(n)), Value: []byte(fmt.Sprint(n))}, nil)
	}
	no("flush", more.Flush(context.Background()))
	wait(name+": all records of the rest", func() bool { return count.Load() == 2*records })
	admin := kadm.NewClient(more)
	wait(name+": commits", func() bool {
		found, err := admin.FetchOffsets(context.Background(), group)
		sum := int64(0)
		found.Each(func(o kadm.OffsetResponse) { sum += o.At })
		return err == nil && sum == 2*records
	})
	for i := 1; i < 3; i++ {
		members[i].CloseAllowingRebalance()
	}
	running.Wait()
	more.Close()
}

func wait(what string, condition func() bool) {
	for limit := time.Now().Add(30 * time.Second); !condition(); time.Sleep(5 * time.Millisecond) {
		check(what, time.Now().Before(limit))
	}
}

type handler struct {
	seen  *sync.Map
	count *atomic.Int64
}

func (handler) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (handler) Cleanup(sarama.ConsumerGroupSession) error { return nil }
func (h handler) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case m, open := <-claim.Messages():
			if !open {
				return nil
			}
			if _, was := h.seen.LoadOrStore(string(m.Value), true); !was {
				h.count.Add(1)
			}
			session.MarkMessage(m, "")
		case <-session.Context().Done():
			return nil
		}
	}
}

func saramaGroup(broker string) {
	topic := "sarama-group"
	fill(broker, topic, records)
	var seen sync.Map
	var count atomic.Int64
	var running sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	for i := 0; i < 3; i++ {
		config := sarama.NewConfig()
		config.Version = sarama.V3_6_0_0
		config.Consumer.Offsets.Initial = sarama.OffsetOldest
		config.Consumer.Group.Heartbeat.Interval = 100 * time.Millisecond
		if i == 0 {
			config.Consumer.Group.InstanceId = "static"
		}
		group, err := sarama.NewConsumerGroup([]string{broker}, topic, config)
		no("sarama group", err)
		running.Add(1)
		go func() {
			defer running.Done()
			for ctx.Err() == nil {
				_ = group.Consume(ctx, []string{topic}, handler{&seen, &count})
			}
			no("sarama close", group.Close())
		}()
	}
	wait("sarama: all records", func() bool { return count.Load() == records })
	cancel()
	running.Wait()
}

// settle prints how many milliseconds a group of `members` takes from its start until its partitions are all assigned and everyone has some.
func settle(broker string, next bool, members, parts int, label string) {
	client, err := kgo.NewClient(kgo.SeedBrokers(broker))
	no("client", err)
	admin := kadm.NewClient(client)
	topic := "settle-" + label
	_, err = admin.CreateTopic(context.Background(), int32(parts), 1, nil, topic)
	no("create", err)
	wait("topic", func() bool {
		ends, err := admin.ListEndOffsets(context.Background(), topic)
		return err == nil && ends.Error() == nil
	})
	var mu sync.Mutex
	owned := make([]map[int32]bool, members)
	began := time.Now()
	clients := make([]*kgo.Client, members)
	for i := range clients {
		owned[i] = map[int32]bool{}
		change := func(add bool) func(context.Context, *kgo.Client, map[string][]int32) {
			return func(_ context.Context, _ *kgo.Client, found map[string][]int32) {
				mu.Lock()
				defer mu.Unlock()
				for _, p := range found[topic] {
					if add {
						owned[i][p] = true
					} else {
						delete(owned[i], p)
					}
				}
			}
		}
		clients[i], err = kgo.NewClient(kgo.SeedBrokers(broker), kgo.ConsumerGroup("g-"+label), kgo.ConsumeTopics(topic), kgo.WithContext(nextGeneration(next)),
			kgo.OnPartitionsAssigned(change(true)), kgo.OnPartitionsRevoked(change(false)), kgo.OnPartitionsLost(change(false)))
		no("member", err)
	}
	wait("everyone", func() bool {
		mu.Lock()
		defer mu.Unlock()
		total := 0
		for _, of := range owned {
			if len(of) == 0 {
				return false
			}
			total += len(of)
		}
		return total == parts
	})
	fmt.Printf("%s %.1f\n", label, float64(time.Since(began).Microseconds())/1000)
	var closing sync.WaitGroup
	for _, c := range clients {
		closing.Add(1)
		go func() { defer closing.Done(); c.Close() }()
	}
	closing.Wait()
	client.Close()
}
