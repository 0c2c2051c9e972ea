package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"os"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kgo"
)

// What a client with a certificate uses; `folder` has what `ottla certs` writes.
func tlsConfig(folder, authority, client string) *tls.Config {
	pem, err := os.ReadFile(authority + "/ca.crt")
	no("authority", err)
	pool := x509.NewCertPool()
	check("authority", pool.AppendCertsFromPEM(pem))
	config := &tls.Config{RootCAs: pool}
	if client != "" {
		pair, err := tls.LoadX509KeyPair(folder+"/"+client+".crt", folder+"/"+client+".key")
		no("certificate", err)
		config.Certificates = []tls.Certificate{pair}
	}
	return config
}

func franzTLS(broker string, config *tls.Config) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.DialTLSConfig(config), kgo.RecordDeliveryTimeout(3*time.Second),
		kgo.RetryTimeout(3*time.Second), kgo.RequestRetries(1), kgo.UnknownTopicRetries(1))
	no("franz client", err)
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Second)
	defer cancel()
	return client.ProduceSync(ctx, &kgo.Record{Topic: "t", Value: []byte("franz")}).FirstErr()
}

func saramaTLS(broker string, config *tls.Config) error {
	settings := sarama.NewConfig()
	settings.Net.TLS.Enable, settings.Net.TLS.Config = true, config
	settings.Metadata.Retry.Max, settings.Producer.Return.Successes = 0, true
	producer, err := sarama.NewSyncProducer([]string{broker}, settings)
	if err != nil {
		return err
	}
	defer producer.Close()
	_, _, err = producer.SendMessage(&sarama.ProducerMessage{Topic: "t", Value: sarama.StringEncoder("sarama")})
	return err
}

// A client with a good certificate is served; without one, with a stranger's, or that trusts another authority, it is not.
func tlsClients(broker, good, other string) {
	for name, produce := range map[string]func(string, *tls.Config) error{"franz": franzTLS, "sarama": saramaTLS} {
		no(name, produce(broker, tlsConfig(good, good, "client")))
		check(name+" without a certificate", produce(broker, tlsConfig(good, good, "")) != nil)
		check(name+" a stranger", produce(broker, tlsConfig(other, good, "stranger")) != nil)
		check(name+" wrong authority", produce(broker, tlsConfig(good, other, "client")) != nil)
	}
}
