// Troubles of kafkajs, against the broker of which the address is the first argument: a record is too large for its topic, the broker
// refuses a batch as out of order, which a producer that is made again sends, or a transaction that is made again has, and of two
// transactional producers with the same id the younger one fences the older one.
const { CompressionTypes, Kafka, logLevel } = require('kafkajs')
const assert = require('assert')
require('./zstd')

async function main () {
  const kafka = new Kafka({ brokers: [process.argv[2]], logLevel: logLevel.NOTHING })
  const admin = kafka.admin()
  await admin.connect()
  await admin.createTopics({ topics: [{ topic: 'js-twins', numPartitions: 1 }], waitForLeaders: true })
  const idempotent = kafka.producer({ idempotent: true, maxInFlightRequests: 1 })
  await idempotent.connect()
  const send = size => idempotent.send({ topic: 'small', messages: [{ value: 'x'.repeat(size) }] })
  await assert.rejects(send(5000))
  await send(1).catch(() => {})
  await idempotent.send({ topic: 'js-twins', compression: CompressionTypes.ZSTD, messages: [{ value: 'x' }] })
  await idempotent.disconnect()
  for (let n = 0; n < 2; n++) {
    const producer = kafka.producer({ idempotent: true, maxInFlightRequests: 1, retry: { retries: 2 } })
    await producer.connect()
    for (let record = 0; record < 6; record++) await producer.send({ topic: 'astray', messages: [{ value: 'x' }] }).catch(() => {})
    await producer.disconnect()
    const writer = kafka.producer({ transactionalId: 'js-astray', maxInFlightRequests: 1, idempotent: true, retry: { retries: 2 } })
    await writer.connect()
    for (let number = 0; number < 3; number++) {
      const transaction = await writer.transaction()
      try {
        for (let record = 0; record < 2; record++) await transaction.send({ topic: 'astray-writes', messages: [{ value: 'x' }] })
        await transaction.commit()
      } catch (error) {
        await transaction.abort()
      }
    }
    await writer.disconnect()
  }
  const opened = []
  for (let n = 0; n < 2; n++) {
    const producer = kafka.producer({ transactionalId: 'js-twins', maxInFlightRequests: 1, idempotent: true })
    await producer.connect()
    const transaction = await producer.transaction()
    await transaction.send({ topic: 'js-twins', messages: [{ value: `${n}` }] })
    opened.push({ producer, transaction })
  }
  const [old, young] = opened
  await assert.rejects(old.transaction.commit())
  await young.transaction.commit()
  for (const { producer } of opened) await producer.disconnect()
  await admin.disconnect()
  console.log('ok')
}

main().then(() => process.exit(0)).catch(error => { console.log('failed:', error); process.exit(1) })
