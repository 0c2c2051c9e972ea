package main

import (
	"context"
	"fmt"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// A listener where clients log in: its address, and a user.
type login struct{ address, user, password string }

// franzAnew connects, and asks for the brokers.
func franzAnew(ctx context.Context, options []kgo.Opt) error {
	client, err := kgo.NewClient(options...)
	if err != nil {
		return err
	}
	defer client.Close()
	_, err = kadm.NewClient(client).ListBrokers(ctx)
	return err
}

func franzLoginCodes(at login, options []kgo.Opt) does {
	ctx := context.Background()
	mechanism := scram.Auth{User: at.user, Pass: at.password}.AsSha256Mechanism()
	secured := append(options[:len(options):len(options)], kgo.SeedBrokers(at.address), kgo.SASL(mechanism))
	client, err := kgo.NewClient(secured...)
	if err != nil {
		panic(err)
	}
	admin := kadm.NewClient(client)
	var token kadm.DelegationToken
	hmac := func() []byte {
		if token.HMAC == nil {
			token, err = admin.CreateDelegationToken(ctx, kadm.CreateDelegationToken{MaxLifetime: time.Hour})
			no("a token", err)
		}
		return token.HMAC
	}
	return does{
		"ApiVersions":      func(string) error { return franzAnew(ctx, options) },
		"SaslHandshake":    func(string) error { return franzAnew(ctx, secured) },
		"SaslAuthenticate": func(string) error { return franzAnew(ctx, secured) },
		"CreateDelegationToken": func(string) error {
			_, err := admin.CreateDelegationToken(ctx, kadm.CreateDelegationToken{MaxLifetime: time.Hour})
			return err
		},
		"RenewDelegationToken":    func(string) error { _, err := admin.RenewDelegationToken(ctx, hmac(), time.Hour); return err },
		"ExpireDelegationToken":   func(string) error { _, err := admin.ExpireDelegationToken(ctx, hmac(), time.Hour); return err },
		"DescribeDelegationToken": func(string) error { _, err := admin.DescribeDelegationTokens(ctx); return err },
	}
}

func franzClusterCodes(client *kgo.Client, options []kgo.Opt) does {
	admin, ctx := kadm.NewClient(client), context.Background()
	return does{
		"OffsetForLeaderEpoch": func(string) error {
			start := map[string]map[int32]kgo.Offset{errorsTopic: {0: kgo.NewOffset().At(0).WithEpoch(0)}}
			return franzPoll(ctx, append(options, kgo.ConsumePartitions(start), kgo.ConsumeResetOffset(kgo.NoResetOffset())))
		},
		"AlterReplicaLogDirs": func(string) error {
			dirs, err := admin.DescribeAllLogDirs(ctx, nil)
			if err != nil {
				return err
			}
			asked := kadm.AlterReplicaLogDirsReq{}
			dirs.Each(func(dir kadm.DescribedLogDir) { asked.Add(dir.Dir, kadm.TopicsSet{errorsTopic: {0: {}}}) })
			found, err := admin.AlterAllReplicaLogDirs(ctx, asked)
			for _, one := range found.Sorted() {
				err = first(err, one.Err)
			}
			return err
		},
		"UnregisterBroker": func(string) error {
			request := kmsg.NewPtrUnregisterBrokerRequest()
			request.BrokerID = 99
			found, err := request.RequestWith(ctx, client)
			if err != nil {
				return err
			}
			return kerr.ErrorForCode(found.ErrorCode)
		},
	}
}

func saramaLoginCodes(broker string, at login, config *sarama.Config) does {
	secured := *config
	secured.Net.SASL.Enable, secured.Net.SASL.Mechanism, secured.Net.SASL.Version = true, sarama.SASLTypePlaintext, sarama.SASLHandshakeV1
	secured.Net.SASL.User, secured.Net.SASL.Password = at.user, at.password
	anew := func(address string, config *sarama.Config) error {
		client, err := sarama.NewClient([]string{address}, config)
		if err != nil {
			return err
		}
		defer client.Close()
		return client.RefreshMetadata()
	}
	return does{
		"ApiVersions":      func(string) error { return anew(broker, config) },
		"SaslHandshake":    func(string) error { return anew(at.address, &secured) },
		"SaslAuthenticate": func(string) error { return anew(at.address, &secured) },
	}
}

// merged has what each of them does.
func merged(all ...does) does {
	found := does{}
	for _, some := range all {
		for name, one := range some {
			if found[name] != nil {
				panic(fmt.Sprint("twice: ", name))
			}
			found[name] = one
		}
	}
	return found
}

// franzTelemetry has clients that write records, and push their metrics, until it is killed.
func franzTelemetry(broker, topic string, names []string) {
	var producers []*kgo.Client
	for _, name := range names {
		options := []kgo.Opt{kgo.SeedBrokers(broker), kgo.ClientID(name), kgo.DefaultProduceTopic(topic), kgo.AllowAutoTopicCreation()}
		producer, err := kgo.NewClient(append(options, kgo.ConnIdleTimeout(5*time.Minute))...) // the broker counts requests of connections that are open
		no("a producer", err)
		producers = append(producers, producer)
	}
	for range time.Tick(50 * time.Millisecond) {
		for _, producer := range producers {
			producer.Produce(context.Background(), kgo.StringRecord("value"), nil)
		}
	}
}
