import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { api, liveHome, startLive, writeHome } from '../e2e/live-gateway.js'
import { root } from '../repository.js'
import { agentPrograms, ownPrograms, type AgentProgram, type OwnProgram } from './support/agent-programs.js'
import { brought } from './support/clients.js'
import { LAST_WORDS, scriptedModel, type ScriptedModel } from './support/scripted-model.js'

t.setTimeout(850_000)

const TOOL = 'slot_list'
const PROMPT = 'Which slots are there? Ask the tool slot_list, then say what you have seen.'
const MOST_MS = 240_000

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

interface Stage {
  readonly work: string
  /** Runs a command in the folder `work`, as a user with that home. */
  readonly run: (command: string, args: readonly string[], env?: Readonly<Record<string, string>>) => Promise<Ended>
  readonly svc: (...words: readonly string[]) => Promise<Ended>
}

/** A home of its own; what a program leaves running ends with the test. */
async function stageOf (t: Test, home: string, program: string): Promise<Stage> {
  const work = join(home, 'work')
  await mkdir(work)
  const mark = randomUUID()
  t.teardown(() => endMarked(mark))
  const { PATH = '' } = process.env
  const surroundings = { PATH: `${join(program, '..')}:${PATH}`, HOME: home, LANG: 'C.UTF-8', TERM: 'dumb', SVC_RING_MARK: mark }
  const inHome: Stage['run'] = (command, args, env = {}) => run(command, args, { ...surroundings, ...env }, work)
  return { work, run: inHome, svc: (...words) => inHome(process.execPath, [join(root, 'dist/cli/svc.js'), ...words]) }
}

async function emptyHome (t: Test, name: string): Promise<string> {
  const home = await mkdtemp(join(tmpdir(), `svc-ring-${name}-`))
  t.teardown(() => rm(home, { recursive: true, force: true, maxRetries: 5 }))
  return home
}

/** Targets of the calls of tools by an agent, each with its outcome. */
async function calls (gateway: string, agent: string): Promise<string[]> {
  const { json } = await api({ url: gateway }, 'GET', `/api/activity?action=mcp.tool.invoked&actor=mcp:${agent}`)
  return (json as { records: ReadonlyArray<{ target: string, outcome: string }> }).records.map(({ target, outcome }) => `${target} ${outcome}`)
}

/** @param behind the model behind the gateway, for a program that is pointed at the gateway itself */
async function tries (
  t: Test, { client, files, env, prepare, ask }: AgentProgram, gateway: string, behind: ScriptedModel | null = null
): Promise<void> {
  const program = await brought(t, 'agent-programs.sh', client)
  if (program === null) return
  const model = behind ?? await scriptedModel(t, TOOL)
  const url = behind === null ? model.url : gateway
  const home = await emptyHome(t, client)
  await writeHome(home, files(url))
  const stage = await stageOf(t, home, program)
  const own = env?.(url, home)
  if (prepare !== undefined) t.match(await stage.run(program, prepare(url), own), { code: 0 }, 'it is told of the model')
  const connected = await stage.svc('mcp', 'connect', client, '--write', '--url', gateway)
  t.match(connected, { code: 0, stdout: / is written/ }, 'svc mcp connect writes its configuration')

  const ended = await stage.run(program, ask(PROMPT, url, home), own)
  const { unknown, counts } = model
  t.equal(ended.code, 0, 'it ends well', { ended, unknown, counts })
  t.match(ended.stdout, LAST_WORDS, 'and says what the model said last', { ended, unknown, counts })
  t.ok(counts.calls > 0 && counts.answers > 0, 'the model called the tool, and was answered', { counts, unknown, ended })
  t.strictSame(await calls(gateway, client), [`admin/${TOOL} ok`], 'the call is written down as the program\'s')
}

/** Started by `svc agent run`, then alone by what `svc agent connect` wrote: models and tools of the gateway. */
async function runs (t: Test, own: OwnProgram, gateway: string, model: ScriptedModel): Promise<void> {
  const { agent, words, bare, bareEnv, prepare, plain = false } = own
  const program = await brought(t, 'agent-programs.sh', agent)
  if (program === null) return
  const stage = await stageOf(t, await emptyHome(t, agent), program)
  const seen = new Set<string>()
  model.asked = async () => {
    const { json } = await api({ url: gateway }, 'GET', '/api/requests')
    const { requests } = json as { requests: ReadonlyArray<{ model: string, agent: string | null }> }
    for (const { model: wanted, agent: who } of requests) if (wanted === 'scripted') seen.add(String(who))
  }
  const way = async (t: Test, ask: () => Promise<Ended>, who: string): Promise<void> => {
    seen.clear()
    const [before, unknown] = [(await calls(gateway, agent)).length, model.unknown.length]
    const ended = await ask()
    t.equal(ended.code, 0, 'it ends well', { ended })
    t.match(ended.stdout, LAST_WORDS, 'and says what the model said last', { ended })
    t.strictSame([...seen], [who], 'its requests are listed under its name')
    t.strictSame((await calls(gateway, agent)).slice(before), plain ? [] : [`admin/${TOOL} ok`], 'its call of a tool is in the audit')
    const left = model.unknown.slice(unknown).filter(path => path.startsWith('POST') && !path.endsWith('/count_tokens'))
    t.ok(left.length <= 1, 'the upstream, which speaks chat alone, was asked once at most for what it does not speak', { left })
  }
  await t.test('svc agent run', t => way(t, () => stage.svc('agent', 'run', agent, '--url', gateway, '--', ...words(PROMPT)), agent))
  await t.test('svc agent connect', async t => {
    t.match(await stage.svc('agent', 'connect', agent, '--write', '--url', gateway), { code: 0, stdout: / is written/ })
    if (prepare !== undefined) t.match(await stage.run(program, prepare(gateway)), { code: 0 }, 'it is told of the model')
    await way(t, () => stage.run(program, bare(PROMPT), bareEnv), plain ? 'null' : agent)
  })
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
  }
  t.equal(await gateway.kill('SIGTERM'), 0)
})

t.test('programs that people run agents with use the models and tools of the gateway by svc agent run, and alone by what svc agent connect writes', async t => {
  const model = await scriptedModel(t, TOOL, { chatOnly: true })
  const gateway = await startLive(t, await liveHome(t, {
    'etc/svc/svc.toml': '[runtime]\ndriver = "process"\n[plugins.config.agents]\nmodel = "scripted"\n[aliases]\n"gemini-2.5-pro" = "scripted"\n',
    'etc/svc/upstreams.toml': `[[upstream]]\nname = "ring"\nkind = "remote"\nurl = "${model.url}/v1"\n`
  }))
  const only = process.env.SVC_TEST_AGENT_PROGRAMS?.split(',')
  for (const own of ownPrograms.filter(({ agent }) => only?.includes(agent) !== false)) {
    await t.test(own.agent, t => runs(t, own, gateway.url, model))
  }
  const gemini = agentPrograms.find(({ client }) => client === 'gemini-cli')!
  if (only?.includes(gemini.client) !== false) await t.test(gemini.client, t => tries(t, gemini, gateway.url, model))
  t.equal(await gateway.kill('SIGTERM'), 0)
})
