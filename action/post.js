// The job failed: shows what the broker logged.
const { spawnSync } = require('node:child_process')
const path = require('node:path')

process.exit(spawnSync('bash', [path.join(__dirname, 'show-log.sh')], { stdio: 'inherit' }).status || 0)
