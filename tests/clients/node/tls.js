// kafkajs over TLS, against the broker of which the address is the first argument; then the folders of the good and of the other authority.
const { Kafka, logLevel } = require('kafkajs')
const assert = require('assert')
const fs = require('fs')

async function produce (broker, folder, authority, client) {
  const read = path => fs.readFileSync(path, 'utf-8')
  const ssl = { ca: [read(`${authority}/ca.crt`)] }
  if (client) Object.assign(ssl, { cert: read(`${folder}/${client}.crt`), key: read(`${folder}/${client}.key`) })
  const kafka = new Kafka({ brokers: [broker], ssl, logLevel: logLevel.NOTHING, retry: { retries: 0 }, connectionTimeout: 3000 })
  const producer = kafka.producer()
  try {
    await producer.connect()
    await producer.send({ topic: 't', messages: [{ value: 'js' }] })
  } finally {
    await producer.disconnect()
  }
}

async function main () {
  const [broker, good, other] = process.argv.slice(2)
  await produce(broker, good, good, 'client')
  await assert.rejects(produce(broker, good, good, null))
  await assert.rejects(produce(broker, other, good, 'stranger'))
  await assert.rejects(produce(broker, good, other, 'client'))
  console.log('ok')
}

main().catch(error => { console.log(error); process.exit(1) })
