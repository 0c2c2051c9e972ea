package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
)

// Gets a token from the endpoint with the client credentials grant.
func token(endpoint, id, secret string) (string, error) {
	form := url.Values{"grant_type": {"client_credentials"}, "client_id": {id}, "client_secret": {secret}}
	reply, err := http.PostForm(endpoint, form)
	if err != nil {
		return "", err
	}
	defer reply.Body.Close()
	var granted struct {
		Token string `json:"access_token"`
		Error string `json:"error"`
	}
	if err := json.NewDecoder(reply.Body).Decode(&granted); err != nil {
		return "", err
	}
	if granted.Token == "" {
		return "", fmt.Errorf("no token: %d %s", reply.StatusCode, granted.Error)
	}
	return granted.Token, nil
}

// A token whose signature is another's.
func damaged(good string) string {
	last := good[len(good)-3]
	other := byte('A')
	if last == other {
		other = 'B'
	}
	return good[:len(good)-3] + string(other) + good[len(good)-2:]
}

type provider func() (string, error)

func (p provider) Token() (*sarama.AccessToken, error) {
	given, err := p()
	return &sarama.AccessToken{Token: given}, err
}

func franzOauth(broker string, given provider) error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	mechanism := oauth.Oauth(func(context.Context) (oauth.Auth, error) {
		text, err := given()
		return oauth.Auth{Token: text}, err
	})
	client, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.SASL(mechanism), kgo.RequestRetries(0))
	no("franz client", err)
	defer client.Close()
	_, err = kadm.NewClient(client).ListTopics(ctx)
	return err
}

func saramaOauth(broker string, given provider) error {
	config := sarama.NewConfig()
	config.Net.SASL.Enable, config.Net.SASL.Mechanism = true, sarama.SASLTypeOAuth
	config.Net.SASL.TokenProvider = given
	config.Metadata.Retry.Max = 0
	client, err := sarama.NewClient([]string{broker}, config)
	if err != nil {
		return err
	}
	defer client.Close()
	_, err = client.Topics()
	return err
}

// Tokens of the endpoint are taken; those with another signature are not, and the endpoint gives none for a wrong secret.
func oauthClients(broker, endpoint, id, secret string) {
	good := func() (string, error) { return token(endpoint, id, secret) }
	forged := func() (string, error) {
		given, err := good()
		return damaged(given), err
	}
	wrong := func() (string, error) { return token(endpoint, id, "wrong") }
	for name, topics := range map[string]func(string, provider) error{"franz": franzOauth, "sarama": saramaOauth} {
		no(name, topics(broker, good))
		check(name+" with a forged token", topics(broker, forged) != nil)
		check(name+" with a wrong secret", topics(broker, wrong) != nil)
	}
}
