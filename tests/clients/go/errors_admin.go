package main

import (
	"context"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Administration of a cluster that meets errors: rights, users, quotas, replicas and features.

func franzAdminCodes(client *kgo.Client, options []kgo.Opt) does {
	admin, ctx := kadm.NewClient(client), context.Background()
	set := kadm.TopicsSet{}
	set.Add(errorsTopic, 0)
	right := func() *kadm.ACLBuilder {
		return kadm.NewACLs().Topics("t").Allow("User:u").AllowHosts("*").Operations(kadm.OpRead).ResourcePatternType(kadm.ACLPatternLiteral)
	}
	user, value := "u", "1000000"
	return does{
		"DescribeAcls": func(string) error {
			found, err := admin.DescribeACLs(ctx, right())
			for _, one := range found {
				err = first(err, one.Err)
			}
			return err
		},
		"CreateAcls": func(string) error {
			found, err := admin.CreateACLs(ctx, right())
			for _, one := range found {
				err = first(err, one.Err)
			}
			return err
		},
		"DeleteAcls": func(string) error {
			if _, err := admin.CreateACLs(ctx, right()); err != nil { // a right to delete, which may have an error of its own
				return err
			}
			found, err := admin.DeleteACLs(ctx, right())
			for _, one := range found {
				err = first(err, one.Err)
				for _, deleted := range one.Deleted {
					err = first(err, deleted.Err)
				}
			}
			return err
		},
		"DescribeUserScramCredentials": func(string) error {
			found, err := admin.DescribeUserSCRAMs(ctx, user)
			return first(err, found.Error())
		},
		"AlterUserScramCredentials": func(string) error {
			found, err := admin.AlterUserSCRAMs(ctx, nil, []kadm.UpsertSCRAM{{User: user, Mechanism: kadm.ScramSha256, Iterations: 4096, Password: "secret"}})
			return first(err, found.Error())
		},
		"AlterClientQuotas": func(string) error {
			entity := kadm.ClientQuotaEntity{{Type: "user", Name: &user}}
			found, err := admin.AlterClientQuotas(ctx, []kadm.AlterClientQuotaEntry{{Entity: entity, Ops: []kadm.AlterClientQuotaOp{{Key: "producer_byte_rate", Value: 1e9}}}})
			for _, one := range found {
				err = first(err, one.Err)
			}
			return err
		},
		"AlterPartitionReassignments": func(string) error {
			var asked kadm.AlterPartitionAssignmentsReq
			asked.Assign(errorsTopic, 0, []int32{1})
			found, err := admin.AlterPartitionAssignments(ctx, asked)
			return first(err, found.Error())
		},
		"ListPartitionReassignments": func(string) error { _, err := admin.ListPartitionReassignments(ctx, set); return err },
		"ElectLeaders": func(string) error {
			found, err := admin.ElectLeaders(ctx, kadm.ElectPreferredReplica, set)
			return first(err, found[errorsTopic][0].Err)
		},
		"UpdateFeatures": func(string) error {
			found, err := admin.UpdateFeatures(ctx, false, kadm.FeatureUpdate{Feature: "group.version", MaxVersionLevel: 1, UpgradeType: 1})
			return first(err, found.Error())
		},
		"AlterConfigs": func(string) error {
			found, err := admin.AlterTopicConfigsState(ctx, []kadm.AlterConfig{{Name: "retention.ms", Value: &value}}, errorsTopic)
			for _, one := range found {
				err = first(err, one.Err)
			}
			return err
		},
		"ListConfigResources": func(string) error {
			found, err := admin.ListConfigResources(ctx)
			return first(err, found.Err)
		},
		"WriteTxnMarkers": func(string) error {
			written := kadm.TopicsSet{}
			written.Add("transactions", 0)
			found, err := admin.WriteTxnMarkers(ctx, kadm.TxnMarkers{ProducerID: 99, Topics: written})
			return first(err, found[99].Topics["transactions"].Partitions[0].Err)
		},
		"AddPartitionsToTxn": func(name string) error { return franzTransact(ctx, append(options, kgo.TransactionalID(name))) },
		"AddOffsetsToTxn":    func(name string) error { return franzConsumeAndWrite(ctx, name, options) },
	}
}

func saramaAdminCodes(broker string, admin sarama.ClusterAdmin, config *sarama.Config) does {
	resource := sarama.Resource{ResourceType: sarama.AclResourceTopic, ResourceName: "t", ResourcePatternType: sarama.AclPatternLiteral}
	right := sarama.Acl{Principal: "User:u", Host: "*", Operation: sarama.AclOperationRead, PermissionType: sarama.AclPermissionAllow}
	name, principal, host := "t", "User:u", "*"
	asked := sarama.AclFilter{
		ResourceType: sarama.AclResourceTopic, ResourceName: &name, ResourcePatternTypeFilter: sarama.AclPatternLiteral, Principal: &principal,
		Host: &host, Operation: sarama.AclOperationRead, PermissionType: sarama.AclPermissionAllow,
	}
	value := "1000000"
	return does{
		"ListOffsets": func(string) error {
			client, err := sarama.NewClient([]string{broker}, config)
			if err != nil {
				return err
			}
			defer client.Close()
			_, err = client.GetOffset(errorsTopic, 0, sarama.OffsetNewest)
			return err
		},
		"DescribeAcls": func(string) error { _, err := admin.ListAcls(asked); return err },
		"CreateAcls":   func(string) error { return admin.CreateACL(resource, right) },
		"DeleteAcls": func(string) error {
			if err := admin.CreateACL(resource, right); err != nil {
				return err
			}
			found, err := admin.DeleteACL(asked, false)
			for _, one := range found {
				err = first(err, known(one.Err))
			}
			return err
		},
		"AlterConfigs": func(string) error {
			return admin.AlterConfig(sarama.TopicResource, errorsTopic, map[string]*string{"retention.ms": &value}, false)
		},
		"DescribeLogDirs": func(string) error {
			found, err := admin.DescribeLogDirs([]int32{1})
			for _, one := range found[1] {
				err = first(err, known(one.ErrorCode))
			}
			return err
		},
		"ElectLeaders": func(string) error {
			found, err := admin.ElectLeaders(sarama.PreferredElection, map[string][]int32{errorsTopic: {0}})
			if one := found[errorsTopic][0]; one != nil {
				err = first(err, known(one.ErrorCode))
			}
			return err
		},
		"AlterPartitionReassignments": func(string) error { return admin.AlterPartitionReassignments(errorsTopic, [][]int32{{1}}) },
		"ListPartitionReassignments": func(string) error {
			_, err := admin.ListPartitionReassignments(errorsTopic, []int32{0})
			return err
		},
		"DescribeClientQuotas": func(string) error { _, err := admin.DescribeClientQuotas(nil, false); return err },
		"AlterClientQuotas": func(string) error {
			entity := []sarama.QuotaEntityComponent{{EntityType: sarama.QuotaEntityUser, MatchType: sarama.QuotaMatchExact, Name: "u"}}
			return admin.AlterClientQuotas(entity, sarama.ClientQuotasOp{Key: "producer_byte_rate", Value: 1e9}, false)
		},
		"DescribeUserScramCredentials": func(string) error {
			found, err := admin.DescribeUserScramCredentials([]string{"u"})
			for _, one := range found {
				err = first(err, known(one.ErrorCode))
			}
			return err
		},
		"AlterUserScramCredentials": func(string) error {
			upsert := sarama.AlterUserScramCredentialsUpsert{Name: "u", Mechanism: sarama.SCRAM_MECHANISM_SHA_256, Iterations: 4096, Salt: []byte("salt"), Password: []byte("secret")}
			found, err := admin.UpsertUserScramCredentials([]sarama.AlterUserScramCredentialsUpsert{upsert})
			for _, one := range found {
				err = first(err, known(one.ErrorCode))
			}
			return err
		},
	}
}

// known is nil for no error.
func known(code sarama.KError) error {
	if code == sarama.ErrNoError {
		return nil
	}
	return code
}
