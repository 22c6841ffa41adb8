import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { liveHome, startLive, writeHome } from '../e2e/live-gateway.js'
import { root } from '../repository.js'
import { agentPrograms, type AgentProgram } from './support/agent-programs.js'
import { brought } from './support/clients.js'
import { LAST_WORDS, scriptedModel } from './support/scripted-model.js'

t.setTimeout(600_000)

const TOOL = 'slot_list'
const PROMPT = 'Which slots are there? Ask the tool slot_list, then say what you have seen.'
const MOST_MS = 90_000

interface Ended { readonly code: number | string | null, readonly stdout: string, readonly stderr: string }

function run (command: string, args: readonly string[], env: Readonly<Record<string, string>>, cwd: string): Promise<Ended> {
  return new Promise(resolve => {
    const child = execFile(command, [...args], { env, cwd, timeout: MOST_MS, killSignal: 'SIGKILL', maxBuffer: 64 * 1024 * 1024 },
      (error, stdout, stderr) => resolve({ code: error === null ? 0 : error.code ?? error.signal ?? 1, stdout, stderr }))
    child.stdin!.end()
  })
}

/** Ends what a program has left running: every process that has the mark in its environment. */
async function endMarked (mark: string): Promise<void> {
  for (const pid of (await readdir('/proc')).filter(name => /^\d+$/.test(name))) {
    const environment = await readFile(`/proc/${pid}/environ`, 'latin1').catch(() => '')
    if (!environment.split('\0').includes(`SVC_RING_MARK=${mark}`)) continue
    try {
      process.kill(Number(pid), 'SIGKILL')
    } catch {
      // it ended by itself
    }
  }
}

/** @param throughUs whether its model is the gateway's, which serves it from an upstream that speaks chat completions alone */
async function tries (
  t: Test, { client, files, env, prepare, ask }: AgentProgram, gateway: string, throughUs = false
): Promise<void> {
  const program = await brought(t, 'agent-programs.sh', client)
  if (program === null) return
  const scripted = await scriptedModel(t, TOOL, { chatOnly: throughUs })
  if (throughUs) await servedBy(t, gateway, client, scripted.url)
  const model = { ...scripted, url: throughUs ? gateway : scripted.url }
  const home = await mkdtemp(join(tmpdir(), `svc-ring-${client}-`))
  t.teardown(() => rm(home, { recursive: true, force: true, maxRetries: 5 }))
  await writeHome(home, files(model.url))
  const work = join(home, 'work')
  await mkdir(work)
  const mark = randomUUID()
  t.teardown(() => endMarked(mark))
  const { PATH = '' } = process.env
  const surroundings = { PATH: `${join(program, '..')}:${PATH}`, HOME: home, LANG: 'C.UTF-8', TERM: 'dumb', SVC_RING_MARK: mark, ...env?.(model.url, home) }
  if (prepare !== undefined) t.match(await run(program, prepare(model.url), surroundings, work), { code: 0 }, 'it is told of the model')
  const connect = [join(root, 'dist/cli/svc.js'), 'mcp', 'connect', client, '--write', '--url', gateway]
  const connected = await run(process.execPath, connect, surroundings, work)
  t.match(connected, { code: 0, stdout: / is written/ }, 'svc mcp connect writes its configuration')

  const ended = await run(program, ask(PROMPT, model.url, home), surroundings, work)
  const { unknown, counts } = model
  t.equal(ended.code, 0, 'it ends well', { ended, unknown, counts })
  t.match(ended.stdout, LAST_WORDS, 'and says what the model said last', { ended, unknown, counts })
  t.ok(counts.calls > 0 && counts.answers > 0, 'the model called the tool, and was answered', { counts, unknown, ended })
  const { records } = await (await fetch(`${gateway}/api/activity?action=mcp.tool.invoked&actor=mcp:${client}`)).json() as {
    records: Array<{ target: string, outcome: string }>
  }
  t.match(records, [{ target: `admin/${TOOL}`, outcome: 'ok' }], 'the call is written down as the program\'s')
  const left = unknown.filter(path => path.startsWith('POST') && !path.endsWith('/count_tokens'))
  if (throughUs) t.ok(left.length <= 1, 'the upstream was asked once for what it does not speak', { unknown })
}

async function servedBy (t: Test, gateway: string, name: string, url: string): Promise<void> {
  const made = await fetch(`${gateway}/api/upstreams`, {
    method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ name, url: `${url}/v1`, auth_style: 'none' })
  })
  t.equal(made.status, 201, `the upstream is taken: ${(await made.text()).slice(0, 200)}`)
  t.teardown(() => fetch(`${gateway}/api/upstreams/${name}`, { method: 'DELETE' }))
}

t.test('programs that people run agents with use the tools of the gateway by what svc mcp connect writes', async t => {
  const home = await liveHome(t, {
    'etc/svc/svc.toml': '[runtime]\ndriver = "process"\n[slots]\nautostart = false\n',
    'etc/svc/slots/agent.toml': 'type = "llm"\ndevice = "cpu"\n'
  })
  const gateway = await startLive(t, home)
  const only = process.env.SVC_TEST_AGENT_PROGRAMS?.split(',')
  for (const program of agentPrograms.filter(({ client }) => only?.includes(client) !== false)) {
    await t.test(program.client, t => tries(t, program, gateway.url))
    const isTranslated = program.client === 'codex' || program.client === 'claude-code'
    if (isTranslated) await t.test(`${program.client} over chat`, t => tries(t, program, gateway.url, true))
  }
  t.equal(await gateway.kill('SIGTERM'), 0)
})
