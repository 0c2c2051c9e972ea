// kafkajs in examinations of the verdict. Each argument is the name of one and the address of its broker. The work of an
// examination goes on until a line comes on the standard input; then the client closes all that it has.
const { CompressionTypes, Kafka, logLevel } = require('kafkajs')
const readline = require('readline')
require('./zstd')

const CHURN = 8 // steps after which the second member of a group goes, and comes again
const STEP_MS = 100
const SELDOM_MS = 3000 // between records where connections become idle
const TOGETHER = 10 // records that do not wait for each other
const TIMEOUTS = { sessionTimeout: 6000, rebalanceTimeout: 6000 }
const SASL = { mechanism: 'plain', username: 'examined', password: 'examined-secret' }
let orders = 0

const pause = (ms = STEP_MS) => new Promise(resolve => setTimeout(resolve, ms))

function of (broker, more = {}) {
  return new Kafka({ brokers: [broker], logLevel: logLevel.NOTHING, ...more })
}

// What kafkajs gives up, its application does again.
async function again (step) {
  for (;;) {
    try {
      return await step()
    } catch (error) {
      await pause()
    }
  }
}

// Repeats a step until the examiner has seen enough.
async function until (step) {
  for (let n = 0; orders === 0; n++) await step(n)
  orders--
}

// A client that could not connect is made again.
function started (make) {
  return again(async () => {
    const client = make()
    await client.connect()
    return client
  })
}

function producerOf (kafka, more = {}) {
  return started(() => kafka.producer({ idempotent: true, maxInFlightRequests: 1, ...more }))
}

const message = (topic, partition = 0) => ({ topic, messages: [{ value: 'value', partition }] })

async function topicOf (kafka, topic) {
  const admin = await started(() => kafka.admin())
  await again(() => admin.createTopics({ topics: [{ topic, numPartitions: 2 }], waitForLeaders: true }))
  return admin
}

async function memberOf (kafka, groupId, topic) {
  const member = await started(() => kafka.consumer({ groupId, heartbeatInterval: 100, ...TIMEOUTS, maxWaitTimeInMs: 50 }))
  member.on(member.events.GROUP_JOIN, event => { member.partitions = (event.payload.memberAssignment[topic] || []).length })
  member.on(member.events.REBALANCING, () => { member.partitions = 0 })
  await again(() => member.subscribe({ topic, fromBeginning: true }))
  await again(() => member.run({ autoCommitInterval: 100, eachMessage: async () => {} }))
  return member
}

// Records that do not wait for each other.
async function idempotence (broker) {
  const kafka = of(broker)
  const admin = await topicOf(kafka, 'plain')
  const producer = await producerOf(kafka)
  await until(() => Promise.all(Array.from({ length: TOGETHER }, () => again(() => producer.send(message('plain'))))))
  for (const one of [producer, admin]) await one.disconnect()
}

// Records of a hundred sizes: the next record after one that is refused has its sequence number, and is another one.
const sized = (topic, number) => ({ topic, messages: [{ value: 'v'.repeat(1 + number % 100), partition: 0 }] })

// Transactions, until a producer can neither commit nor abort.
async function endingWrites (broker) {
  const kafka = of(broker)
  const admin = await topicOf(kafka, 'written')
  const producer = await producerOf(kafka, { transactionalId: 'ending' })
  await until(async n => {
    const transaction = await producer.transaction()
    try {
      await transaction.send(sized('written', n))
      await transaction.commit()
    } catch (error) {
      await transaction.abort()
    }
  }).catch(() => {})
  for (const one of [producer, admin]) await one.disconnect()
}

// Records that do not wait for each other. What is refused is lost.
async function endingSends (broker) {
  const kafka = of(broker)
  const admin = await topicOf(kafka, 'plain')
  const producer = await producerOf(kafka)
  let sent = 0
  const send = () => producer.send(sized('plain', sent++)).catch(() => pause())
  await until(() => Promise.all(Array.from({ length: TOGETHER }, send)))
  for (const one of [producer, admin]) await one.disconnect()
}

// A record now and then.
async function connections (broker) {
  const kafka = of(broker)
  const admin = await topicOf(kafka, 'plain')
  await admin.disconnect()
  const producer = await producerOf(kafka)
  await until(async () => {
    await again(() => producer.send(message('plain')))
    await pause(SELDOM_MS)
  })
  await producer.disconnect()
}

// A producer, and a consumer, which in kafkajs is always a member of a group.
async function plain (broker, more = {}, compression = CompressionTypes.None) {
  const kafka = of(broker, more)
  const admin = await topicOf(kafka, 'plain')
  const producer = await producerOf(kafka)
  const consumer = await memberOf(kafka, 'plain', 'plain')
  await until(async () => {
    await again(() => producer.send({ compression, ...message('plain') }))
    await again(() => admin.fetchTopicOffsets('plain'))
    await again(() => admin.fetchTopicMetadata())
  })
  for (const one of [consumer, producer, admin]) await one.disconnect()
}

// A consumer that only reads, which in kafkajs is always a member of a group.
async function reading (broker) {
  const consumer = await memberOf(of(broker), 'reading', 'read')
  await until(() => pause())
  await consumer.disconnect()
}

// A transaction that cannot be aborted either is given up with its producer.
async function transactions (broker) {
  const kafka = of(broker)
  const admin = await topicOf(kafka, 'written')
  const newProducer = () => producerOf(kafka, { transactionalId: 'transactions' })
  let producer = await newProducer()
  const offsets = { consumerGroupId: 'group', topics: [{ topic: 'written', partitions: [{ partition: 0, offset: '1' }] }] }
  await until(async () => {
    let transaction
    try {
      transaction = await producer.transaction()
      await transaction.send(message('written'))
      await transaction.send(message('written'))
      await transaction.sendOffsets(offsets)
      await transaction.commit()
    } catch (error) {
      try {
        await transaction.abort()
      } catch (fatal) {
        await producer.disconnect()
        producer = await newProducer()
      }
    }
  })
  for (const one of [producer, admin]) await one.disconnect()
}

// Two members read and commit; the second one goes and comes again.
async function group (broker) {
  const kafka = of(broker)
  const admin = await topicOf(kafka, 'shared')
  const producer = await producerOf(kafka)
  const members = [await memberOf(kafka, 'members', 'shared')]
  await until(async n => {
    const moves = n % CHURN === 0 && members.every(member => member.partitions)
    if (moves && members.length === 2) await members.pop().disconnect()
    else if (moves) members.push(await memberOf(kafka, 'members', 'shared'))
    await again(() => producer.send(message('shared', n % 2)))
    await pause()
  })
  for (const one of [...members, producer, admin]) await one.disconnect()
}

const WORKS = { basic: broker => plain(broker, {}, CompressionTypes.ZSTD), idempotence, connections, network: plain, truncation: reading, transactions, 'classic-group': group, 'ending-writes': endingWrites, 'ending-sends': endingSends, login: broker => plain(broker, { sasl: SASL }) }

async function main () {
  const lines = readline.createInterface({ input: process.stdin })
  lines.on('line', () => orders++)
  for (const argument of process.argv.slice(2)) {
    const [name, broker] = argument.split('=')
    await WORKS[name](broker)
    console.log(`${name} done`)
  }
  lines.close()
}

// a connection that kafkajs has forgotten would keep the process
main().then(() => process.exit(0)).catch(error => { console.error(error); process.exit(1) })
