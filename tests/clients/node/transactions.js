// kafkajs in transactions, against the broker of which the address is the first argument: records and offsets, committed and aborted.
const { Kafka, logLevel } = require('kafkajs')
const assert = require('assert')

async function main () {
  const kafka = new Kafka({ brokers: [process.argv[2]], logLevel: logLevel.NOTHING })
  const admin = kafka.admin()
  await admin.connect()
  await admin.createTopics({ topics: [{ topic: 'js-txn', numPartitions: 2 }], waitForLeaders: true })
  const producer = kafka.producer({ transactionalId: 'js-txn', maxInFlightRequests: 1, idempotent: true })
  await producer.connect()
  for (let n = 0; n < 10; n++) {
    const transaction = await producer.transaction()
    await transaction.send({ topic: 'js-txn', messages: [{ value: `${n}`, partition: n % 2 }] })
    await transaction.sendOffsets({ consumerGroupId: 'js-txn', topics: [{ topic: 'js-txn', partitions: [{ partition: 0, offset: `${n}` }] }] })
    await (n % 3 ? transaction.commit() : transaction.abort())
  }
  await producer.disconnect()
  const consumer = kafka.consumer({ groupId: 'js-txn-reader', readUncommitted: false })
  await consumer.connect()
  await consumer.subscribe({ topic: 'js-txn', fromBeginning: true })
  const seen = []
  await consumer.run({ eachMessage: async ({ message }) => { seen.push(Number(message.value)) } })
  for (let n = 0; seen.length < 6; n++) { assert.ok(n < 2000, `too long: ${seen}`); await new Promise(resolve => setTimeout(resolve, 10)) }
  assert.deepStrictEqual(seen.sort(), [1, 2, 4, 5, 7, 8])
  await consumer.disconnect()
  const [offsets] = await admin.fetchOffsets({ groupId: 'js-txn', topics: ['js-txn'] })
  assert.strictEqual(offsets.partitions.find(p => p.partition === 0).offset, '8')
  await admin.disconnect()
  console.log('ok')
}

main().catch(error => { console.log('failed:', error); process.exit(1) })
