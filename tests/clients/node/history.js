// kafkajs at work until the input ends; what each line of the journal means is in history.py.
const { Kafka, logLevel } = require('kafkajs')

const NAME = 'kafkajs'
const acked = new Set()
let enough = false
let produced = false

const say = (...words) => console.log(...words)
const rest = ms => new Promise(resolve => setTimeout(resolve, ms))

const retry = { initialRetryTime: 100, maxRetryTime: 500 } // so often does it try an address before it asks for metadata again
const kafka = new Kafka({ brokers: process.argv[2].split(','), logLevel: logLevel.NOTHING, requestTimeout: 4000, connectionTimeout: 2000, retry })

// It asks for no new metadata when a node does not answer, only when what it has is too old.
const fresh = { metadataMaxAge: 1000 }
// When the group's coordinator has moved, it goes on asking the old one until it gives up, and then joins as another member: the group waits
// until the session of the first has expired.
const brief = { sessionTimeout: 6000, rebalanceTimeout: 6000, heartbeatInterval: 500 }
const givesUp = { ...retry, retries: 2, restartOnFailure: async () => true }

async function produce () {
  const producer = kafka.producer({ ...fresh, idempotent: true, maxInFlightRequests: 1 })
  await producer.connect()
  for (let n = 0; !enough; n++) {
    try {
      await producer.send({ topic: NAME, messages: [{ key: `${n}`, value: `${n}` }] })
      acked.add(`${n}`)
      say('acked', n)
    } catch (error) {
      say('note produce', error.message)
      say('lost', n)
    }
    await rest(30)
  }
  await producer.disconnect()
  produced = true
}

// One member of a group reads everything, and commits what it has read.
async function consume () {
  const seen = new Set()
  const consumer = await consumed(seen)
  while (!produced || [...acked].some(one => !seen.has(one))) await rest(50)
  await consumer.disconnect()
}

async function consumed (seen) {
  const group = `${NAME}-classic`
  const consumer = kafka.consumer({ ...fresh, ...brief, groupId: group, retry: givesUp })
  let joined = 0
  consumer.on(consumer.events.GROUP_JOIN, () => joined++)
  await consumer.connect()
  await consumer.subscribe({ topic: NAME, fromBeginning: true })
  await consumer.run({
    autoCommit: false,
    eachBatchAutoResolve: true,
    eachBatch: async ({ batch, isStale }) => {
      const since = joined
      for (const one of isStale() ? [] : batch.messages) {
        seen.add(`${one.value}`)
        say('read', group, batch.partition, one.offset, `${one.value}`)
      }
      // kafkajs goes on with a batch after it has joined again, and would commit it as the new member, which reads it once more
      if (isStale() || !batch.messages.length || since !== joined) return
      const offset = `${BigInt(batch.lastOffset()) + 1n}`
      await consumer.commitOffsets([{ topic: NAME, partition: batch.partition, offset }])
      say('committed', group, batch.partition, offset)
      await rest(30) // some records for each commit
    }
  })
  return consumer
}

async function transactional () {
  for (;;) {
    const producer = kafka.producer({ ...fresh, transactionalId: NAME, idempotent: true, maxInFlightRequests: 1 })
    try {
      await producer.connect()
      return producer
    } catch (error) {
      say('note connect', error.message)
      await producer.disconnect()
    }
  }
}

// Transactions of three records, each in a partition of its own, and of an offset.
async function transact () {
  let producer = await transactional()
  for (let n = 0; !enough; n++) {
    let commits = false
    try {
      const transaction = await producer.transaction()
      for (let part = 0; part < 3; part++) {
        await transaction.send({ topic: `${NAME}-whole`, messages: [{ value: `${n}-${part}`, partition: part }] })
      }
      await transaction.sendOffsets({ consumerGroupId: `${NAME}-whole`, topics: [{ topic: NAME, partitions: [{ partition: 0, offset: `${n}` }] }] })
      commits = true
      await transaction.commit()
      say('whole', n)
    } catch (error) {
      say('note transaction', n, error.message)
      say(commits ? 'doubtful' : 'aborted', n)
      // kafkajs can neither commit again nor abort when the connection is lost in a commit: only another producer can go on
      await producer.disconnect()
      producer = await transactional()
    }
    await rest(100)
  }
  await producer.disconnect()
}

async function main () {
  process.stdin.on('end', () => { enough = true })
  process.stdin.resume()
  await Promise.all([produce(), consume(), transact()])
  say('ok')
}

main().then(() => process.exit(0), error => { say('failed:', error); process.exit(1) })
