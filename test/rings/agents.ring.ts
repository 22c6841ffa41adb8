import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import t from 'tap'
import { liveHome, startLive } from '../e2e/live-gateway.js'
import { root } from '../repository.js'
import { lacking } from './clients.js'
import { LAST_WORDS, scriptedModel } from './scripted-model.js'

t.setTimeout(600_000)

interface Ended { readonly code: number | string, readonly stdout: string, readonly stderr: string }

t.test('pi is installed by svc agent install, asked, uses a tool of the gateway, and leaves nothing', async t => {
  const model = await scriptedModel(t, 'slot_list')
  const home = await liveHome(t, {
    'etc/svc/svc.toml': '[runtime]\ndriver = "process"\n[plugins.config.agents]\nmodel = "scripted"\n',
    'etc/svc/upstreams.toml': `[[upstream]]\nname = "ring"\nkind = "remote"\nurl = "${model.url}/v1"\n`
  })
  const gateway = await startLive(t, home)
  const user = join(home, 'user')
  await mkdir(user)
  const svc = (...words: readonly string[]): Promise<Ended> => new Promise(resolve => {
    const args = [join(root, 'dist/cli/svc.js'), 'agent', words[0]!, '--url', gateway.url, ...words.slice(1)]
    const child = execFile(process.execPath, args, { cwd: user, env: { ...process.env, HOME: user } },
      (error, stdout, stderr) => resolve({ code: error === null ? 0 : error.code ?? 1, stdout, stderr }))
    child.stdin!.end()
  })
  const installed = await svc('install', 'pi', '--json')
  const isAway = /ENOTFOUND|ECONNREFUSED|EAI_AGAIN|ETIMEDOUT|npm error network/.test(installed.stderr)
  if (isAway) return lacking(t, 'the npm registry is not reached')
  t.match(installed, { code: 0 })
  const status = JSON.parse(installed.stdout) as { version: string, data_dir: string, program: string, phases: object }
  t.match(status, { version: '0.73.1', wanted_version: '0.73.1', phases: { probe: { status: 'done', details: { asked: true } } } })

  const asked = await svc('run', 'pi', '--', '-p', 'Which slots are there? Ask the tool slot_list.')
  t.match(asked, { code: 0, stdout: LAST_WORDS })
  t.match(model.counts, { calls: 1, answers: 1 })
  const activity = await (await fetch(`${gateway.url}/api/activity?action=mcp.tool.invoked&actor=mcp:pi`)).json() as { records: object[] }
  t.match(activity.records, [{ target: 'admin/slot_list', outcome: 'ok' }], 'the call is in the audit under its name')

  t.match(await svc('uninstall', 'pi'), { code: 0, stdout: 'pi is gone.\n' })
  t.notOk(existsSync(dirname(status.data_dir)), 'nothing is left on the gateway')
  t.notOk(existsSync(join(user, '.local/state/svc/agents/pi')), 'nor of its runs')
})
