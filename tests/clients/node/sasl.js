// kafkajs logs in to the broker of which the address, a user and its password are the arguments; over TLS if the folder
// of an authority follows. The last line is "ok".
const { Kafka, logLevel } = require('kafkajs')
const assert = require('assert')
const fs = require('fs')

async function main () {
  const [broker, username, password, authority] = process.argv.slice(2)
  const ssl = authority && { ca: [fs.readFileSync(`${authority}/ca.crt`, 'utf-8')] }
  for (const mechanism of ['plain', 'scram-sha-256', 'scram-sha-512']) {
    const settings = { brokers: [broker], ssl, logLevel: logLevel.NOTHING, retry: { retries: 0 } }
    const admin = new Kafka({ ...settings, sasl: { mechanism, username, password } }).admin()
    await admin.connect()
    await admin.listTopics()
    await admin.disconnect()
    const refused = new Kafka({ ...settings, sasl: { mechanism, username, password: 'wrong' } }).admin()
    await assert.rejects(refused.connect(), /authentication failed/i)
  }
}

main().then(() => console.log('ok'), error => { console.error(error); process.exit(1) })
