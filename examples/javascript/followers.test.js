// A producer and followers that are late, with kafkajs. OTTLA_BOOTSTRAP_SERVERS and OTTLA_LAB say where the broker is.
const assert = require('node:assert')
const test = require('node:test')
const { Kafka, logLevel } = require('kafkajs')

const servers = process.env.OTTLA_BOOTSTRAP_SERVERS
const labUrl = process.env.OTTLA_LAB

async function lab (method, path, body) {
  const headers = { 'Content-Type': 'application/json' }
  if (process.env.OTTLA_LAB_TOKEN) headers.Authorization = `Bearer ${process.env.OTTLA_LAB_TOKEN}`
  const reply = await fetch(`${labUrl}/v1/${path}`, { method, headers, body: body && JSON.stringify(body) })
  const found = await reply.json()
  if (!reply.ok) throw new Error(found.error)
  return found
}

test('a producer waits for followers, and tries again after an error', async () => {
  const topic = `javascript-${Date.now()}`
  await lab('POST', 'seed', { topics: [{ name: topic }] })
  const producer = new Kafka({ brokers: [servers], logLevel: logLevel.NOTHING }).producer()
  await producer.connect()

  await lab('POST', 'hold', { topic })
  let isDone = false
  const sent = producer.send({ topic, acks: -1, messages: [{ value: 'first' }] }).then(() => { isDone = true })
  while ((await lab('GET', `topics/${topic}`)).partitions[0].log_end_offset < 1) await new Promise(setImmediate)
  assert.strictEqual(isDone, false, 'the record is in the log, and the followers do not have it')
  await lab('POST', 'release', { topic })
  await sent

  const fault = await lab('POST', 'faults', {
    api: 'Produce', topic, times: 1, action: { kind: 'error', error: 'NOT_LEADER_OR_FOLLOWER' }
  })
  await producer.send({ topic, acks: -1, messages: [{ value: 'second' }] })
  assert.strictEqual((await lab('GET', `faults/${fault.number}`)).applied, 1)
  assert.strictEqual((await lab('GET', `topics/${topic}`)).partitions[0].log_end_offset, 2)
  await lab('DELETE', `faults/${fault.number}`)
  await producer.disconnect()
})
