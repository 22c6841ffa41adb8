import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { liveHome, startLive } from '../../e2e/live-gateway.js'
import { giveToNobody, mayBeNobody, NOBODY } from '../../e2e/nobody.js'
import { freePort } from '../../ports.js'
import { bin, run, type Finished } from '../support.js'

/** As the user of the gateway, who is not root. */
async function svc (...args: readonly string[]): Promise<Finished> {
  const child = spawn(process.execPath, [bin, ...args], { uid: NOBODY, gid: NOBODY, env: { PATH: process.env.PATH }, stdio: ['ignore', 'pipe', 'pipe'] })
  const out = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const) child[name].on('data', (chunk: Buffer) => { out[name] += chunk.toString() })
  const [code] = await once(child, 'close') as [number]
  return { code, ...out }
}

/** What a container left that ran as root: folders in which the gateway's user may remove nothing. */
function leave (data: string): string {
  const theirs = join(data, 'theirs')
  mkdirSync(join(theirs, 'deeper'), { recursive: true })
  for (const place of [theirs, join(theirs, 'deeper')]) writeFileSync(join(place, 'file'), 'theirs')
  return theirs
}

t.test('data of a service that the gateway\'s user may not delete stays, with the command that removes it; all else goes', async t => {
  if (!mayBeNobody()) return t.comment('skipped: only root may start a gateway as somebody else')
  const home = await liveHome(t, {
    'etc/svc/svc.toml': `[runtime]\ndriver = "process"\n[slots]\nautostart = false\n[plugins.config.api-services]\nsystemctl = "/nonexistent"\n[plugins.config.api-services.services.openwebui]\nport = ${await freePort()}\n`
  })
  const own = join(home, 'var/lib/svc/plugin-state/api-services/openwebui')
  for (const folder of ['data/ours/deep', 'env-01234567/bin']) mkdirSync(join(own, folder), { recursive: true })
  for (const file of ['secret', 'data/ours/deep/file', 'env-01234567/bin/open-webui']) writeFileSync(join(own, file), 'ours')
  giveToNobody(home)
  const theirs = leave(join(own, 'data'))
  const gateway = await startLive(t, home, { HOME: home }, NOBODY)
  const uninstall = (): Promise<Finished> => run(['service', 'uninstall', 'openwebui', '--data', '--yes', '--url', gateway.url])

  const first = await uninstall()
  t.match(first, { code: 1, stdout: /^$/, stderr: /Open WebUI is uninstalled, but the gateway's user may not delete all of its data \(2 left; EACCES: [^)]*theirs[^)]*\)/ }, first.stderr)
  t.match(first.stderr.replaceAll(/\s+/g, ' '), `sudo rm -rf -- ${own}`)
  t.strictSame(readdirSync(own, { recursive: true }).toSorted(), ['data', 'data/theirs', 'data/theirs/deeper', 'data/theirs/deeper/file', 'data/theirs/file'], 'all else is gone')
  t.match(await uninstall(), { code: 1 }, 'it says so each time')
  t.notMatch((await run(['service', 'list', '--url', gateway.url])).stdout, /^openwebui +(?:up|down)/m, 'the service itself is not there any more')
  t.equal(await gateway.kill('SIGTERM'), 0)

  const purged = await svc('uninstall', '--purge', '--force', '--home', home)
  t.match(purged, { code: 1, stderr: /could not be removed; fix the cause and run it again/ }, purged.stderr)
  t.match(purged.stderr.replaceAll(/\s+/g, ' '), `this user may not remove what is left: sudo rm -rf -- ${join(home, 'var/lib/svc/plugin-state')}`)
  t.notOk(existsSync(join(home, 'etc/svc')), 'what can be removed is')
  t.strictSame(readdirSync(join(home, 'var/lib/svc')), ['plugin-state'])
  t.ok(existsSync(join(theirs, 'file')))
  giveToNobody(home)
  t.match(await svc('uninstall', '--purge', '--force', '--home', home), { code: 0, stdout: /Everything is removed/ })
  t.notOk(existsSync(join(home, 'var/lib/svc')))
})
