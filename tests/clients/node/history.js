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

// One member of a group reads everything, and commits what it has read. kafkajs starts a consumer again after an error that it calls
// retriable; after any other the consumer has ended for good, and only another one can go on.
async function consume () {
  const seen = new Set()
  let hasEnded
  do {
    hasEnded = false
    const consumer = kafka.consumer({ ...fresh, ...brief, groupId: `${NAME}-classic`, retry: givesUp })
    consumer.on(consumer.events.CRASH, ({ payload }) => {
      say('note crash', payload.error.name, payload.error.message, 'restart', payload.restart)
      hasEnded = !payload.restart
    })
    try {
      await begin(consumer, seen)
      while (!hasEnded && (!produced || [...acked].some(one => !seen.has(one)))) await rest(50)
    } catch (error) {
      say('note consumer', error.message)
      hasEnded = true
    }
    await consumer.disconnect()
  } while (hasEnded)
}

async function begin (consumer, seen) {
  const group = `${NAME}-classic`
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
