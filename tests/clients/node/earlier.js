// kafkajs against an earlier release, of which the broker's address is the first argument: it writes, reads in a group, commits, and lists
// offsets. The second argument is the topic. The last line is "ok".
const { Kafka, CompressionTypes, logLevel } = require('kafkajs')
const assert = require('assert')
const [, , broker, topic, creates] = process.argv

async function main () {
  const kafka = new Kafka({ brokers: [broker], logLevel: logLevel.NOTHING })
  const admin = kafka.admin()
  await admin.connect()
  if (creates) await admin.createTopics({ topics: [{ topic, numPartitions: 1 }], waitForLeaders: true })
  const producer = kafka.producer({ allowAutoTopicCreation: true })
  await producer.connect()
  const expected = []
  for (const compression of [CompressionTypes.None, CompressionTypes.GZIP]) {
    for (const acks of [-1, 1]) {
      const values = Array.from({ length: 20 }, (_, n) => `${n}-${'x'.repeat(n)}`)
      await producer.send({ topic, acks, compression, messages: values.map(value => ({ key: 'k', value, partition: 0 })) })
      expected.push(...values)
    }
  }
  await producer.disconnect()
  const [{ low, high }] = await admin.fetchTopicOffsets(topic)
  assert.deepStrictEqual([low, high], ['0', String(expected.length)])
  const found = []
  const consumer = kafka.consumer({ groupId: `g-${topic}`, sessionTimeout: 10000, rebalanceTimeout: 10000 })
  await consumer.connect()
  await consumer.subscribe({ topic, fromBeginning: true })
  await new Promise((resolve, reject) => {
    consumer.on(consumer.events.CRASH, event => reject(event.payload.error))
    consumer.run({
      eachMessage: async ({ message }) => {
        found.push(message.value.toString())
        if (found.length === expected.length) resolve()
      }
    }).catch(reject)
  })
  assert.deepStrictEqual(found, expected)
  await consumer.commitOffsets([{ topic, partition: 0, offset: String(expected.length) }])
  await consumer.disconnect()
  const [offsets] = await admin.fetchOffsets({ groupId: `g-${topic}`, topics: [topic] })
  assert.strictEqual(offsets.partitions[0].offset, String(expected.length))
  await admin.disconnect()
  console.log('ok')
}

main().catch(error => { console.log('failed:', error); process.exit(1) })
