// kafka-node, the client of the years of Kafka 0.8 to 2.x: it writes, reads from the beginning, and commits. Arguments: address, topic, and
// "groups" where the broker coordinates groups. The last line is "ok".
const kafka = require('kafka-node')
const assert = require('assert')
const [, , kafkaHost, topic, grouped] = process.argv
const values = Array.from({ length: 20 }, (_, n) => `${n}-${'x'.repeat(n)}`)

const made = call => new Promise((resolve, reject) => call((error, found) => error ? reject(error) : resolve(found)))
const ready = one => new Promise((resolve, reject) => one.on('ready', resolve).on('error', reject))

function read (stream, count) {
  const found = []
  return new Promise((resolve, reject) => stream.on('error', reject).on('message', message => {
    found.push(message)
    if (found.length === count) resolve(found)
  }))
}

async function main () {
  const client = new kafka.KafkaClient({ kafkaHost, requestTimeout: 20000 })
  await ready(client)
  await made(done => client.refreshMetadata([topic], done)) // which creates it
  const producer = new kafka.HighLevelProducer(client, { requireAcks: 1 })
  const expected = []
  for (const attributes of [0, 1]) { // none and gzip
    await made(done => producer.send([{ topic, messages: values, partition: 0, attributes }], done))
    await made(done => producer.send([{ topic, messages: new kafka.KeyedMessage('k', 'keyed'), partition: 0, attributes }], done))
    expected.push(...values, 'keyed')
  }
  const offset = new kafka.Offset(client)
  const latest = await made(done => offset.fetchLatestOffsets([topic], done))
  assert.strictEqual(latest[topic][0], expected.length)
  const first = await made(done => offset.fetch([{ topic, partition: 0, time: -2, maxNum: 1 }], done))
  assert.deepStrictEqual(first[topic][0], [0])
  const consumer = new kafka.Consumer(client, [{ topic, partition: 0, offset: 0 }], { autoCommit: false, fromOffset: true })
  const found = await read(consumer, expected.length)
  assert.deepStrictEqual(found.map(one => one.value), expected)
  assert.deepStrictEqual(found.map(one => one.offset), expected.map((_, n) => n))
  if (grouped) {
    const group = new kafka.ConsumerGroup({ kafkaHost, groupId: `group-${topic}`, fromOffset: 'earliest', autoCommit: false, sessionTimeout: 10000 }, topic)
    assert.deepStrictEqual((await read(group, expected.length)).map(one => one.value), expected)
    await new Promise(resolve => group.once('done', resolve)) // which counts what was read
    await made(done => group.commit(true, done))
    await made(done => group.close(false, done))
    const again = await made(done => offset.fetchCommitsV1(`group-${topic}`, [{ topic, partition: 0 }], done))
    assert.strictEqual(again[topic][0], expected.length)
  }
  console.log('ok')
  process.exit(0)
}

main().catch(error => { console.log('failed:', error); process.exit(1) })
