import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** Says what it was started with, how often its data saw a start, and what its gateway offers it. */
const PAGE = `
const { createServer } = require('http')
const { existsSync, readFileSync, writeFileSync } = require('fs')
const { env } = process
const at = env.PORT ?? env.HINDSIGHT_API_PORT
const gateway = env.OPENAI_API_BASE_URL ?? env.HINDSIGHT_API_EMBEDDINGS_OPENAI_BASE_URL
const file = (env.DATA_DIR ?? env.HOME) + '/starts'
const starts = existsSync(file) ? Number(readFileSync(file, 'utf8')) + 1 : 1
writeFileSync(file, String(starts))
createServer(async (request, reply) => {
  const models = await fetch(gateway + '/models').then(answer => answer.json()).catch(error => String(error))
  reply.setHeader('content-type', 'application/json')
  reply.end(JSON.stringify({ version: 'stand-in', pid: process.pid, env, user: process.getuid(), starts, models }))
}).listen(Number(at), env.HOST ?? env.HINDSIGHT_API_HOST, () => console.log('the stand-in listens at ' + at))
process.on('SIGTERM', () => process.exit(0))
`

export interface StandIn { readonly remove: () => Promise<unknown> }

/**
 * Makes an image that stands in for one of a service, under its name, in an engine that is there for tests.
 * @param user number of the user who runs it
 */
export async function standInImage (host: string, nodeImage: string, tag: string, user = 0): Promise<StandIn> {
  const env = { ...process.env, DOCKER_HOST: host, DOCKER_BUILDKIT: '0' }
  const folder = await mkdtemp(join(tmpdir(), 'svc-stand-in-'))
  try {
    await writeFile(join(folder, 'page.js'), PAGE)
    await writeFile(join(folder, 'Dockerfile'), `FROM ${nodeImage}\nENV STAND_IN=${tag}\nCOPY page.js /page.js\nUSER ${user}\nCMD ["nodejs", "/page.js"]\n`)
    await run('docker', ['build', '--quiet', '--tag', tag, folder], { env })
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
  return { remove: () => run('docker', ['image', 'rm', '--force', tag], { env }) }
}

/** Ids of containers, running or not, that have something of the home mounted. */
export async function containersOf (host: string, home: string): Promise<string[]> {
  const env = { ...process.env, DOCKER_HOST: host }
  const { stdout } = await run('docker', ['ps', '--all', '--quiet', '--no-trunc'], { env })
  const ids = stdout.split('\n').filter(id => id !== '')
  if (ids.length === 0) return []
  // another test may take one away in between
  const inspected = await run('docker', ['inspect', ...ids, '--format', '{{.Id}} {{range .Mounts}}{{.Source}} {{end}}'], { env })
    .catch((error: unknown) => error as { stdout: string })
  return inspected.stdout.split('\n').filter(line => line.includes(home)).map(line => line.split(' ', 1)[0]!)
}
