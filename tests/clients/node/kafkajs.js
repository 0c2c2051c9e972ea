// kafkajs against the broker of which the address is the first argument: it produces and administers. The last line is "ok".
const { Kafka, CompressionTypes, logLevel } = require('kafkajs')
const assert = require('assert')

async function main () {
  const kafka = new Kafka({ brokers: [process.argv[2]], logLevel: logLevel.NOTHING, retry: { retries: 2 } })
  const admin = kafka.admin()
  await admin.connect()
  const began = Date.now() - 60000
  for (const [name, compression] of [['none', CompressionTypes.None], ['gzip', CompressionTypes.GZIP]]) {
    for (const [mode, acks, idempotent] of [['all', -1, false], ['leader', 1, false], ['none', 0, false], ['idempotent', -1, true]]) {
      const topic = `kafkajs-${name}-${mode}`
      assert.strictEqual(await admin.createTopics({ topics: [{ topic, numPartitions: 2 }], waitForLeaders: true }), true)
      const producer = kafka.producer({ idempotent, maxInFlightRequests: idempotent ? 1 : undefined })
      await producer.connect()
      const messages = Array.from({ length: 100 }, (_, n) => ({ key: `k${n}`, value: `${n}`, partition: 1, timestamp: String(began + n) }))
      await producer.send({ topic, acks, compression, messages })
      await producer.disconnect()
      let end = []
      do {
        end = await admin.fetchTopicOffsets(topic)
      } while (acks === 0 && end.find(p => p.partition === 1).high !== '100')
      assert.strictEqual(end.find(p => p.partition === 1).high, '100')
      const at = await admin.fetchTopicOffsetsByTimestamp(topic, began + 40)
      assert.strictEqual(at.find(p => p.partition === 1).offset, '40')
    }
  }
  assert.strictEqual(await admin.createTopics({ topics: [{ topic: 'kafkajs-gzip-all' }] }), false)
  await admin.createPartitions({ topicPartitions: [{ topic: 'kafkajs-gzip-all', count: 4 }] })
  const [described] = (await admin.fetchTopicMetadata({ topics: ['kafkajs-gzip-all'] })).topics
  assert.strictEqual(described.partitions.length, 4)
  await admin.alterConfigs({ validateOnly: false, resources: [{ type: 2, name: 'kafkajs-gzip-all', configEntries: [{ name: 'retention.ms', value: '5000' }] }] })
  const configs = await admin.describeConfigs({ includeSynonyms: false, resources: [{ type: 2, name: 'kafkajs-gzip-all' }] })
  assert.strictEqual(configs.resources[0].configEntries.find(c => c.configName === 'retention.ms').configValue, '5000')
  await admin.deleteTopicRecords({ topic: 'kafkajs-none-all', partitions: [{ partition: 1, offset: '30' }] })
  assert.strictEqual((await admin.fetchTopicOffsets('kafkajs-none-all')).find(p => p.partition === 1).low, '30')
  await assert.rejects(admin.deleteTopicRecords({ topic: 'kafkajs-none-all', partitions: [{ partition: 1, offset: '3000' }] }))
  const producer = kafka.producer()
  await producer.connect()
  await assert.rejects(producer.send({ topic: 'kafkajs-none-all', messages: [{ value: 'x'.repeat(2000000) }] }), /larger|too large|max/i)
  await assert.rejects(producer.send({ topic: 'not a topic', messages: [{ value: 'x' }] }))
  await producer.disconnect()
  await admin.deleteTopics({ topics: ['kafkajs-gzip-all'] })
  assert.ok(!(await admin.listTopics()).includes('kafkajs-gzip-all'))
  await admin.disconnect()
  console.log('ok')
}

main().catch(error => { console.log('failed:', error); process.exit(1) })
