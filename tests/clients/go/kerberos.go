package main

import (
	"context"
	"os"
	"time"

	"github.com/jcmturner/gokrb5/v8/client"
	krb5 "github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/kerberos"
)

// Who logs in with a ticket: the keys of the user are in the keytab, or others are.
type ticketed struct{ user, realm, keytab, service string }

func franzKerberos(broker string, as ticketed) error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	settings, err := krb5.Load(os.Getenv("KRB5_CONFIG"))
	no("Kerberos' configuration", err)
	keys, err := keytab.Load(as.keytab)
	no("the keytab", err)
	user := client.NewWithKeytab(as.user, as.realm, keys, settings, client.DisablePAFXFAST(true))
	mechanism := kerberos.Auth{Client: user, Service: as.service}.AsMechanismWithClose()
	connection, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.SASL(mechanism), kgo.RequestRetries(0))
	no("franz client", err)
	defer connection.Close()
	_, err = kadm.NewClient(connection).ListTopics(ctx)
	return err
}

// A ticket for the broker lets in; without one, for the keys are wrong or the KDC does not know the service, nobody gets in.
// sarama is not here: it sends its tokens without a handshake, as for Kafka 0.9, and Kafka closes such connections.
func kerberosClients(broker, user, realm, good, wrong string) {
	no("with a ticket", franzKerberos(broker, ticketed{user, realm, good, "kafka"}))
	check("with another's keys", franzKerberos(broker, ticketed{user, realm, wrong, "kafka"}) != nil)
	check("for an unknown service", franzKerberos(broker, ticketed{user, realm, good, "other"}) != nil)
}
