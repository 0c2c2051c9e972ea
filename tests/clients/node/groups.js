// kafkajs in a group, against the broker of which the address is the first argument: two members share, one goes, the other has all.
const { Kafka, logLevel } = require('kafkajs')
const assert = require('assert')

async function main () {
  const kafka = new Kafka({ brokers: [process.argv[2]], logLevel: logLevel.NOTHING })
  const admin = kafka.admin()
  await admin.connect()
  await admin.createTopics({ topics: [{ topic: 'js-group', numPartitions: 4 }], waitForLeaders: true })
  const producer = kafka.producer()
  await producer.connect()
  await producer.send({ topic: 'js-group', messages: Array.from({ length: 40 }, (_, n) => ({ value: `${n}`, partition: n % 4 })) })
  await producer.disconnect()
  const seen = new Set()
  const members = [0, 1].map(() => kafka.consumer({ groupId: 'js', heartbeatInterval: 200, sessionTimeout: 6000, rebalanceTimeout: 6000 }))
  const owned = [0, 0]
  for (const [i, member] of members.entries()) {
    member.on(member.events.GROUP_JOIN, e => { owned[i] = (e.payload.memberAssignment['js-group'] || []).length })
    await member.connect()
    await member.subscribe({ topic: 'js-group', fromBeginning: true })
    await member.run({ eachMessage: async ({ message }) => { seen.add(message.value.toString()) }, autoCommitInterval: 100 })
  }
  const until = async condition => { for (let n = 0; !condition(); n++) { assert.ok(n < 2000, 'too long'); await new Promise(resolve => setTimeout(resolve, 10)) } }
  await until(() => seen.size === 40 && owned[0] === 2 && owned[1] === 2)
  const [described] = (await admin.describeGroups(['js'])).groups
  assert.strictEqual(described.state, 'Stable')
  assert.strictEqual(described.members.length, 2)
  await members[1].disconnect()
  await until(() => owned[0] === 4)
  await members[0].disconnect()
  const [offsets] = await admin.fetchOffsets({ groupId: 'js', topics: ['js-group'] })
  assert.strictEqual(offsets.partitions.reduce((sum, p) => sum + Number(p.offset), 0), 40)
  assert.ok((await admin.listGroups()).groups.some(g => g.groupId === 'js'))
  await admin.deleteGroups(['js'])
  await admin.disconnect()
  console.log('ok')
}

main().catch(error => { console.log('failed:', error); process.exit(1) })
