// Installs ottla and starts a broker; the work is done by the scripts beside this file.
const { spawnSync } = require('node:child_process')
const path = require('node:path')

for (const script of ['install.sh', 'start.sh']) {
  const done = spawnSync('bash', [path.join(__dirname, script)], { stdio: 'inherit' })
  if (done.status !== 0) process.exit(done.status || 1)
}
