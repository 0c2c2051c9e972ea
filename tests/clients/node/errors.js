// kafkajs, which is told what to do: a line is an API and a name that is new; the answer is `heard` and the error code that the client
// raises, 0 for none, or the words of an error that is not Kafka's. The arguments are the address of the broker, that of its listener where clients log in,
// and a user and its password.

const readline = require('readline')
const { Kafka, logLevel } = require('kafkajs')

const TOPIC = 'errors', GROUP = 'errors-group', SESSION_MS = 1500
const retry = { initialRetryTime: 10, maxRetryTime: 50, retries: 4 }
const kafka = new Kafka({ clientId: 'errors', brokers: [process.argv[2]], logLevel: logLevel.NOTHING, retry })
const admin = kafka.admin()
const resources = [{ type: 2, name: TOPIC }]
const settings = [{ ...resources[0], configEntries: [{ name: 'retention.ms', value: '1000000' }] }]

function within(ms, work) {
  let timer
  const late = new Promise((_, reject) => { timer = setTimeout(() => reject(new Error('no record')), ms) })
  return Promise.race([work, late]).finally(() => clearTimeout(timer))
}

async function produce() {
  const producer = kafka.producer({ retry })
  await producer.connect()
  try {
    await producer.send({ topic: TOPIC, messages: [{ value: 'x', partition: 0 }] })
  } finally {
    await producer.disconnect()
  }
}

async function transact(name) { // a record and an offset
  const producer = kafka.producer({ retry, transactionalId: name, maxInFlightRequests: 1, idempotent: true })
  await producer.connect()
  try {
    const transaction = await producer.transaction()
    await transaction.send({ topic: 'transactions', messages: [{ value: 'x', partition: 0 }] })
    await transaction.sendOffsets({ consumerGroupId: name, topics: [{ topic: TOPIC, partitions: [{ partition: 0, offset: '1' }] }] })
    await transaction.commit()
  } finally {
    await producer.disconnect()
  }
}

async function consume(name, then = () => {}) { // reads a record, and does something more as a member
  const again = { ...retry, restartOnFailure: async () => false }
  const consumer = kafka.consumer({ groupId: name, retry: again, maxWaitTimeInMs: 100, sessionTimeout: SESSION_MS, heartbeatInterval: 50 })
  await consumer.connect()
  try {
    await consumer.subscribe({ topics: [TOPIC], fromBeginning: true })
    const crash = new Promise((_, reject) => consumer.on(consumer.events.CRASH, event => reject(event.payload.error)))
    const read = new Promise((resolve, reject) => consumer.run({ eachMessage: async () => resolve(), autoCommit: false }).catch(reject))
    await within(30000, Promise.race([crash, read.then(() => then(consumer))]))
  } finally {
    await consumer.disconnect()
  }
}

function beat(name) { // goes on until heartbeats were answered
  let beats = 0
  const beaten = consumer => new Promise(resolve => consumer.on(consumer.events.HEARTBEAT, () => { if (++beats === 3) resolve() }))
  return consume(name, beaten)
}

async function connect(more) { // anew
  const anew = new Kafka({ clientId: 'errors', brokers: [process.argv[2]], logLevel: logLevel.NOTHING, retry, ...more }).admin()
  await anew.connect()
  try {
    await anew.describeCluster()
  } finally {
    await anew.disconnect()
  }
}

const login = { brokers: [process.argv[3]], sasl: { mechanism: 'scram-sha-256', username: process.argv[4], password: process.argv[5] } }
const right = { resourceType: 2, resourceName: 't', resourcePatternType: 3, principal: 'User:u', host: '*', operation: 3, permissionType: 3 }
const create = name => admin.createTopics({ topics: [{ topic: name, numPartitions: 1, replicationFactor: 1 }] })
const does = {
  prepare: create,
  CreateTopics: create,
  DeleteTopics: name => admin.deleteTopics({ topics: [name] }),
  CreatePartitions: name => admin.createPartitions({ topicPartitions: [{ topic: name, count: 2 }] }),
  Metadata: () => admin.fetchTopicMetadata({ topics: [TOPIC] }),
  DescribeConfigs: () => admin.describeConfigs({ resources, includeSynonyms: false }),
  AlterConfigs: () => admin.alterConfigs({ resources: settings, validateOnly: false }),
  DeleteRecords: () => admin.deleteTopicRecords({ topic: TOPIC, partitions: [{ partition: 0, offset: '0' }] }),
  ListOffsets: () => admin.fetchTopicOffsets(TOPIC),
  ListGroups: () => admin.listGroups(),
  DescribeGroups: () => admin.describeGroups([GROUP]),
  DeleteGroups: () => admin.deleteGroups(['no-group']),
  FindCoordinator: name => admin.describeGroups([name]),
  DescribeAcls: () => admin.describeAcls(right),
  CreateAcls: () => admin.createAcls({ acl: [right] }),
  DeleteAcls: () => admin.deleteAcls({ filters: [right] }),
  AlterPartitionReassignments: () => admin.alterPartitionReassignments({ topics: [{ topic: TOPIC, partitionAssignment: [{ partition: 0, replicas: [1] }] }] }),
  ListPartitionReassignments: () => admin.listPartitionReassignments({ topics: [{ topic: TOPIC, partitions: [0] }] }),
  OffsetCommit: name => consume(name, consumer => consumer.commitOffsets([{ topic: TOPIC, partition: 0, offset: '1' }])),
  Heartbeat: beat,
  LeaveGroup: name => consume(name),
  InitProducerId: transact,
  OffsetFetch: () => admin.fetchOffsets({ groupId: GROUP, topics: [TOPIC] }),
  ApiVersions: () => connect({}),
  SaslHandshake: () => connect(login),
  SaslAuthenticate: () => connect(login),
  Produce: produce,
  Fetch: name => consume(name),
  JoinGroup: name => consume(name),
  SyncGroup: name => consume(name),
  AddPartitionsToTxn: transact,
  AddOffsetsToTxn: transact,
  TxnOffsetCommit: transact,
  EndTxn: transact,
}

function codeOf(error) {
  const causes = [error, error.cause, error.originalError, ...(error.errors || []), ...(error.groups || []), ...(error.partitions || [])]
  for (const one of causes.filter(Boolean)) {
    const code = one.code ?? one.errorCode ?? one.error?.code
    if (typeof code === 'number') return String(code)
  }
  return error.cause ? codeOf(error.cause) : String(error.message).replaceAll('\n', ' ')
}

function codeWithin(found) { // an error code in what is returned
  if (Array.isArray(found)) return found.map(codeWithin).find(Boolean) || 0
  if (found && typeof found === 'object') return found.errorCode || Object.values(found).map(codeWithin).find(Boolean) || 0
  return 0
}

async function main() {
  await admin.connect()
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const [api, name] = line.split(' ')
    let answer
    try {
      answer = codeWithin(await does[api](name))
    } catch (error) {
      answer = codeOf(error)
    }
    console.log('heard', answer)
  }
}

main()
