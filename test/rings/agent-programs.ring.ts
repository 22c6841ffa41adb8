import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { api, liveHome, startLive, writeHome } from '../e2e/live-gateway.js'
import { dialectPrograms, type DialectProgram } from './support/agent-dialects.js'
import { agentPrograms, ownPrograms, ownTools, type AgentProgram, type OwnProgram } from './support/agent-programs.js'
import { emptyHome, stageOf, type Ended, type Stage } from './support/agent-stage.js'
import { brought } from './support/clients.js'
import { LAST_WORDS, scriptedModel, type ScriptedModel } from './support/scripted-model.js'
import { hearsWarnings, type Ear } from './support/told-warnings.js'

t.setTimeout(850_000)

const TOOL = 'slot_list'
/** Names of the model behind the gateway: its own, and those that programs insist on. */
const ALIASES = ['gemini-2.5-pro', 'gemini-3-pro-preview']
const MODELS = ['scripted', ...ALIASES]
const PROMPT = 'Which slots are there? Ask the tool slot_list, then say what you have seen.'

/** Targets of the calls of tools by an agent, each with its outcome. */
async function calls (gateway: string, agent: string): Promise<string[]> {
  const { json } = await api({ url: gateway }, 'GET', `/api/activity?action=mcp.tool.invoked&actor=mcp:${agent}`)
  return (json as { records: ReadonlyArray<{ target: string, outcome: string }> }).records.map(({ target, outcome }) => `${target} ${outcome}`)
}

/** With the model itself, and the tools of the gateway. */
async function connects (t: Test, { client, files, env, prepare, ask }: AgentProgram, gateway: string): Promise<void> {
  const program = await brought(t, 'agent-programs.sh', client)
  if (program === null) return
  const model = await scriptedModel(t, TOOL)
  const { url } = model
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

/** What is left out of the requests of a program and its user misses; of others' nothing is. */
const MISSED: Readonly<Record<string, readonly string[]>> = {
  'codex': [leftOut('web_search')],
  'cline in Responses': [
    'truncation: left out, what is too long for the model is refused',
    'include: \'web_search_call.action.sources\' was left out, nothing here makes it',
    leftOut('web_search'),
    leftOut('image_generation')
  ],
  'cline in Messages': [leftOut('web_search_20250305')],
  'cline in Gemini': [leftOut('googleSearch')]
}

function leftOut (tool: string): string {
  return `tools.*: '${tool}' was left out, the gateway cannot run it`
}

function isToldOfMissing (t: Test, ear: Ear, name: string): void {
  const told = new Set(ear.take().map(warning => warning.replace(/^tools\.\d+:/, 'tools.*:')))
  t.strictSame([...told], MISSED[name] ?? [], 'the header of warnings tells what its user misses, and nothing else')
}

interface Place {
  readonly gateway: string
  /** Behind the gateway; it speaks chat alone. */
  readonly model: ScriptedModel
  readonly stage: Stage
  readonly agent: string
}

interface Promised {
  /** Each request that it makes, as the gateway lists it. */
  readonly requests?: string
  /** Whose they are. */
  readonly who?: string
  /** It calls a tool of the gateway. */
  readonly far: boolean
  /** It runs a command. */
  readonly near: boolean
}

/** A program that is asked once, with the model and the tools of the gateway, and its own. */
async function asks (
  t: Test, { gateway, model, stage, agent }: Place, ask: () => Promise<Ended>, { requests, who, far, near }: Promised
): Promise<void> {
  const made = join(stage.work, 'made.txt')
  const [surfaces, names] = [new Set<string>(), new Set<string>()]
  model.then = ownTools[agent]?.(`echo "by ${agent}" > ${made}`) ?? null
  model.asked = async () => {
    interface Row { readonly model: string, readonly surface: string, readonly agent: string | null }
    const { json } = await api({ url: gateway }, 'GET', '/api/requests')
    for (const row of (json as { requests: readonly Row[] }).requests.filter(each => MODELS.includes(each.model))) {
      surfaces.add(row.surface)
      names.add(String(row.agent))
    }
  }
  const [before, unknown] = [(await calls(gateway, agent)).length, model.unknown.length]
  const ended = await ask()
  t.equal(ended.code, 0, 'it ends well', { ended })
  t.match(ended.stdout, LAST_WORDS, 'and says what the model said last', { ended })
  if (who !== undefined) t.strictSame([...names], [who], 'its requests are listed under its name')
  if (requests !== undefined) t.strictSame(surfaces, new Set([requests, 'chat']), 'in the dialect that it was told, and over chat')
  t.strictSame((await calls(gateway, agent)).slice(before), far ? [`admin/${TOOL} ok`] : [], 'its call of a tool of the gateway is in the audit')
  t.equal(await readFile(made, 'utf8').catch(() => null), near ? `by ${agent}\n` : null, 'its own tool did what the model said', { ended })
  await rm(made, { force: true })
  const left = model.unknown.slice(unknown).filter(path => path.startsWith('POST') && !path.endsWith('/count_tokens'))
  t.ok(left.length <= 1, 'the upstream, which speaks chat alone, was asked once at most for what it does not speak', { left })
}

/** Started by `svc agent run`, then alone by what `svc agent connect` wrote: models and tools of the gateway. */
async function runs (t: Test, own: OwnProgram, gateway: string, model: ScriptedModel): Promise<void> {
  const { agent, words, bare, bareEnv, prepare, plain = false, bareWithoutTools = plain } = own
  const program = await brought(t, 'agent-programs.sh', agent)
  if (program === null) return
  const place = { gateway, model, agent, stage: await stageOf(t, await emptyHome(t, agent), program) }
  const { stage } = place
  await t.test('it works when svc agent run starts it', t => {
    const ask = (): Promise<Ended> => stage.svc('agent', 'run', agent, '--url', gateway, '--', ...words(PROMPT))
    return asks(t, place, ask, { who: agent, far: !plain, near: !plain })
  })
  await t.test('it works alone with what svc agent connect wrote', async t => {
    t.match(await stage.svc('agent', 'connect', agent, '--write', '--url', gateway), { code: 0, stdout: / is written/ })
    if (prepare !== undefined) t.match(await stage.run(program, prepare(gateway)), { code: 0 }, 'it is told of the model')
    await asks(t, place, () => stage.run(program, bare(PROMPT), bareEnv), { who: plain ? 'null' : agent, far: !bareWithoutTools, near: !plain })
  })
}

/** In another dialect, by its own configuration. */
async function speaks (t: Test, program: DialectProgram, gateway: string, model: ScriptedModel): Promise<void> {
  const { client, surface, files, env, prepare, ask, isConnected = true } = program
  const path = await brought(t, 'agent-programs.sh', client)
  if (path === null) return
  const home = await emptyHome(t, client)
  await writeHome(home, files(gateway))
  const stage = await stageOf(t, home, path)
  const own = env?.(gateway, home)
  if (prepare !== undefined) t.match(await stage.run(path, prepare(gateway), own), { code: 0 }, 'it is told of the model')
  if (isConnected) t.match(await stage.svc('mcp', 'connect', client, '--write', '--url', gateway), { code: 0 })
  const place = { gateway, model, agent: client, stage }
  await asks(t, place, () => stage.run(path, ask(PROMPT, gateway, home), own), { requests: surface, far: true, near: true })
}

t.test('programs that people run agents with use the tools of the gateway by what svc mcp connect writes', async t => {
  const home = await liveHome(t, {
    'etc/svc/svc.toml': '[runtime]\ndriver = "process"\n[slots]\nautostart = false\n',
    'etc/svc/slots/agent.toml': 'type = "llm"\ndevice = "cpu"\n'
  })
  const gateway = await startLive(t, home)
  const only = process.env.SVC_TEST_AGENT_PROGRAMS?.split(',')
  for (const program of agentPrograms.filter(({ client }) => only?.includes(client) !== false)) {
    await t.test(program.client, t => connects(t, program, gateway.url))
  }
  t.equal(await gateway.kill('SIGTERM'), 0)
})

t.test('programs that people run agents with use the models and tools of the gateway by svc agent run, and alone by what svc agent connect writes', async t => {
  const model = await scriptedModel(t, TOOL, { chatOnly: true })
  const gateway = await startLive(t, await liveHome(t, {
    'etc/svc/svc.toml': '[runtime]\ndriver = "process"\n[plugins.config.agents]\nmodel = "scripted"\n[aliases]\n' +
      ALIASES.map(name => `"${name}" = "scripted"\n`).join(''),
    'etc/svc/upstreams.toml': `[[upstream]]\nname = "ring"\nkind = "remote"\nurl = "${model.url}/v1"\n`
  }))
  const ear = await hearsWarnings(t, gateway.url)
  const only = process.env.SVC_TEST_AGENT_PROGRAMS?.split(',')
  for (const own of ownPrograms.filter(({ agent }) => only?.includes(agent) !== false)) {
    await t.test(own.agent, async t => {
      await runs(t, own, ear.url, model)
      isToldOfMissing(t, ear, own.agent)
    })
  }
  for (const program of dialectPrograms.filter(({ client }) => only?.includes(client) !== false)) {
    await t.test(program.name, async t => {
      await speaks(t, program, ear.url, model)
      isToldOfMissing(t, ear, program.name)
    })
  }
  t.equal(await gateway.kill('SIGTERM'), 0)
})
