// kafkajs meets faults: arguments are the address of a broker, produce or consume, a topic, a group, and how many records.
const { Kafka, logLevel } = require('kafkajs')

async function main () {
  const [broker, what, topic, groupId, many] = process.argv.slice(2)
  const retry = { initialRetryTime: 100, maxRetryTime: 500, retries: 30 }
  const kafka = new Kafka({ brokers: [broker], requestTimeout: 2000, logLevel: logLevel.NOTHING, retry })
  const count = Number(many)
  if (what === 'produce') {
    const producer = kafka.producer({ idempotent: true, maxInFlightRequests: 1 })
    await producer.connect()
    for (let n = 0; n < count; n++) await producer.send({ topic, acks: -1, messages: [{ value: `v${n}` }] })
    await producer.disconnect()
  } else {
    const consumer = kafka.consumer({ groupId, heartbeatInterval: 500, sessionTimeout: 10000, maxWaitTimeInMs: 500, retry })
    const seen = new Set()
    await new Promise((resolve, reject) => {
      consumer.on(consumer.events.CRASH, e => { console.log('error', e.payload.error.name); if (!e.payload.restart) reject(e.payload.error) })
      const eachMessage = async ({ message }) => {
        if (!seen.has(message.offset)) console.log('value', message.value.toString())
        seen.add(message.offset)
        if (seen.size === count) resolve()
      }
      consumer.connect().then(() => consumer.subscribe({ topic, fromBeginning: true })).then(() => consumer.run({ eachMessage })).catch(reject)
    })
    await consumer.commitOffsets([{ topic, partition: 0, offset: String(count) }])
    console.log('ok')
    process.exit(0) // a consumer that has crashed and begun again does not always disconnect
  }
  console.log('ok')
}

main().catch(error => { console.log('failed:', error); process.exit(1) })
