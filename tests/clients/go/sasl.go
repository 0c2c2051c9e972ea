package main

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
	xdg "github.com/xdg-go/scram"
)

func franzMechanism(name, user, password string) sasl.Mechanism {
	switch name {
	case "SCRAM-SHA-256":
		return scram.Auth{User: user, Pass: password}.AsSha256Mechanism()
	case "SCRAM-SHA-512":
		return scram.Auth{User: user, Pass: password}.AsSha512Mechanism()
	}
	return plain.Auth{User: user, Pass: password}.AsMechanism()
}

// Whom clients trust that log in over TLS; nil where the listener has none.
var overTLS *tls.Config

func franzSaslClient(broker string, mechanism sasl.Mechanism, more ...kgo.Opt) *kgo.Client {
	options := append([]kgo.Opt{kgo.SeedBrokers(broker), kgo.SASL(mechanism)}, more...)
	if overTLS != nil {
		options = append(options, kgo.DialTLSConfig(overTLS))
	}
	client, err := kgo.NewClient(options...)
	no("franz client", err)
	return client
}

func franzSasl(broker, user, password string) {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	for _, name := range []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"} {
		client := franzSaslClient(broker, franzMechanism(name, user, password), kgo.AllowAutoTopicCreation())
		no(name+" produce", client.ProduceSync(ctx, &kgo.Record{Topic: "franz-sasl", Value: []byte(name)}).FirstErr())
		client.Close()
		client = franzSaslClient(broker, franzMechanism(name, user, "wrong"), kgo.RequestRetries(0))
		_, err := kadm.NewClient(client).ListTopics(ctx)
		check(name+" with a wrong password", errors.Is(err, kerr.SaslAuthenticationFailed), err)
		client.Close()
	}
}

// A delegation token of the user lets in, and with another HMAC does not.
func franzToken(broker, user, password string) {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	topics := func(mechanism sasl.Mechanism) (*kadm.Client, error) {
		admin := kadm.NewClient(franzSaslClient(broker, mechanism, kgo.RequestRetries(0)))
		_, err := admin.ListTopics(ctx)
		return admin, err
	}
	admin, err := topics(franzMechanism("SCRAM-SHA-256", user, password))
	no("franz", err)
	made, err := admin.CreateDelegationToken(ctx, kadm.CreateDelegationToken{MaxLifetime: time.Hour})
	no("create a token", err)
	admin.Close()
	as := scram.Auth{User: made.TokenID, Pass: base64.StdEncoding.EncodeToString(made.HMAC), IsToken: true}
	for _, mechanism := range []sasl.Mechanism{as.AsSha256Mechanism(), as.AsSha512Mechanism()} {
		admin, err := topics(mechanism)
		no("with the token", err)
		_, err = admin.CreateDelegationToken(ctx, kadm.CreateDelegationToken{MaxLifetime: time.Hour})
		check("a token makes no token", errors.Is(err, kerr.DelegationTokenRequestNotAllowed), err)
		admin.Close()
	}
	as.Pass = base64.StdEncoding.EncodeToString(made.HMAC[1:])
	_, err = topics(as.AsSha256Mechanism())
	check("with another HMAC", errors.Is(err, kerr.SaslAuthenticationFailed), err)
}

// The SCRAM of xdg-go, as sarama's documentation makes a client of it.
type xdgScram struct {
	hash         xdg.HashGeneratorFcn
	conversation *xdg.ClientConversation
}

func (x *xdgScram) Begin(user, password, authzID string) error {
	client, err := x.hash.NewClient(user, password, authzID)
	if err == nil {
		x.conversation = client.NewConversation()
	}
	return err
}

func (x *xdgScram) Step(challenge string) (string, error) { return x.conversation.Step(challenge) }

func (x *xdgScram) Done() bool { return x.conversation.Done() }

func saramaSasl(broker, user, password string) {
	hashes := map[sarama.SASLMechanism]xdg.HashGeneratorFcn{
		sarama.SASLTypePlaintext: nil, sarama.SASLTypeSCRAMSHA256: xdg.SHA256, sarama.SASLTypeSCRAMSHA512: xdg.SHA512,
	}
	for mechanism, hash := range hashes {
		for _, version := range []int16{sarama.SASLHandshakeV0, sarama.SASLHandshakeV1} {
			what := fmt.Sprint("sarama ", mechanism, " ", version)
			no(what, saramaTopics(broker, user, password, mechanism, version, hash))
			check(what+" with a wrong password", saramaTopics(broker, user, "wrong", mechanism, version, hash) != nil)
			check(what+" of nobody", saramaTopics(broker, "nobody", password, mechanism, version, hash) != nil)
		}
	}
}

func saramaTopics(broker, user, password string, mechanism sarama.SASLMechanism, version int16, hash xdg.HashGeneratorFcn) error {
	config := sarama.NewConfig()
	config.Net.SASL.Enable, config.Net.SASL.Mechanism, config.Net.SASL.Version = true, mechanism, version
	config.Net.SASL.User, config.Net.SASL.Password = user, password
	config.Net.TLS.Enable, config.Net.TLS.Config = overTLS != nil, overTLS
	config.Net.SASL.SCRAMClientGeneratorFunc = func() sarama.SCRAMClient { return &xdgScram{hash: hash} }
	config.Metadata.Retry.Max = 0
	client, err := sarama.NewClient([]string{broker}, config)
	if err != nil {
		return err
	}
	defer client.Close()
	_, err = client.Topics()
	return err
}
