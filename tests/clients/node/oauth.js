// kafkajs logs in with tokens to the broker of which the address is the first argument; then the token endpoint, an id and its secret.
const { Kafka, logLevel } = require('kafkajs')
const assert = require('assert')

async function token (endpoint, id, secret) {
  const body = new URLSearchParams({ grant_type: 'client_credentials', client_id: id, client_secret: secret })
  const reply = await fetch(endpoint, { method: 'POST', body })
  const granted = await reply.json()
  if (!reply.ok) throw new Error(granted.error)
  return granted.access_token
}

async function listTopics (broker, provider) {
  const sasl = { mechanism: 'oauthbearer', oauthBearerProvider: async () => ({ value: await provider() }) }
  const kafka = new Kafka({ brokers: [broker], sasl, logLevel: logLevel.NOTHING, retry: { retries: 0 }, requestTimeout: 3000 })
  const admin = kafka.admin()
  try {
    await admin.connect()
    await admin.listTopics()
  } finally {
    await admin.disconnect()
  }
}

async function main () {
  const [broker, endpoint, id, secret] = process.argv.slice(2)
  const good = await token(endpoint, id, secret)
  await listTopics(broker, async () => good)
  const [header, claims] = good.split('.')
  await assert.rejects(listTopics(broker, async () => `${header}.${claims}.${'A'.repeat(86)}`))
  await assert.rejects(listTopics(broker, () => token(endpoint, id, 'wrong')), /invalid_client/)
}

main().then(() => console.log('ok'), error => { console.error(error); process.exit(1) })
