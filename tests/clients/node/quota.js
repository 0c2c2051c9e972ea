// kafkajs produces one batch beyond its quota: the broker, the topic and the size are the arguments. It prints the
// throttle time in ms that the client logs, and "ok".
const { Kafka, logLevel } = require('kafkajs')

async function main () {
  const [broker, topic, size] = process.argv.slice(2)
  let longest = 0
  const logCreator = () => ({ log }) => {
    const found = /throttling in effect for (\d+)ms/.exec(log.message)
    if (found) longest = Math.max(longest, Number(found[1]))
  }
  const producer = new Kafka({ brokers: [broker], logLevel: logLevel.DEBUG, logCreator }).producer()
  await producer.connect()
  await producer.send({ topic, messages: [{ value: Buffer.alloc(Number(size)) }] })
  await producer.disconnect()
  console.log(longest)
}

main().then(() => console.log('ok'), error => { console.error(error); process.exit(1) })
