import { rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { Diagnostic } from '../../../kernel/contract/index.js'
import { classifyTool, createAgentFiles } from '../../../kernel/tools/agent-files.js'
import { openHome } from './support.js'

const HERMES = `schema_version = 1
[agent]
name = "hermes"
display = "Hermes"
[mcp.servers.svc-admin]
builtin = true
[mcp.servers.svc-admin.tools]
allow = ["slot_list", "constructor"]
gated = ["slot_load"]
blocked = ["model_pull"]
[mcp.servers.files]
url = "http://127.0.0.1:8080/mcp/files"
auth = { kind = "bearer-from-env", env = "FILES_TOKEN" }
tools = { allow = ["read"] }
[mcp.servers.off]
url = "http://127.0.0.1:8080/mcp/off"
enabled = false
tools = { allow = ["read"] }
`
const shown = (diagnostics: readonly Diagnostic[]): readonly string[] => diagnostics.map(({ file, path, message }) => `${file} ${path} ${message}`)

t.test('an agent with a file may call what the file allows and nothing else; others are not concerned', async t => {
  const { config } = await openHome(t.testdir(), { 'agents/hermes.toml': HERMES, 'agents/anonymous.toml': '[agent]\nname = "anonymous"\n' })
  t.same(config.snapshot.diagnostics, [])
  const says = (agent: string, server: string, tool: string) => classifyTool(config.snapshot.agents, agent, server, tool)
  const table: ReadonlyArray<readonly [agent: string, server: string, tool: string, expected: string | null]> = [
    ['hermes', 'admin', 'slot_list', 'allow'],
    ['hermes', 'svc-admin', 'slot_list', 'allow'],
    ['hermes', 'admin', 'slot_load', 'gated'],
    ['hermes', 'admin', 'model_pull', 'blocked'],
    ['hermes', 'admin', 'slot_delete', 'unknown_tool'],
    ['hermes', 'admin', 'toString', 'unknown_tool'],
    ['hermes', 'admin', 'SLOT_LIST', 'unknown_tool'],
    ['hermes', 'files', 'read', 'allow'],
    ['hermes', 'files', 'slot_list', 'unknown_tool'],
    ['hermes', 'off', 'read', 'unknown_server'],
    ['hermes', 'memory', 'memory_add', 'unknown_server'],
    ['hermes', 'constructor', 'slot_list', 'unknown_server'],
    ['hermes', '__proto__', 'slot_list', 'unknown_server'],
    ['HERMES', 'admin', 'model_pull', 'blocked'],
    ['Hermes', 'admin', 'slot_delete', 'unknown_tool'],
    ['anonymous', 'admin', 'slot_list', 'unknown_server'],
    ['pi', 'admin', 'slot_delete', null],
    ['constructor', 'admin', 'slot_list', null],
    ['hermes2', 'admin', 'slot_list', null]
  ]
  for (const [agent, server, tool, expected] of table) t.equal(says(agent, server, tool), expected, `${agent} ${server} ${tool}`)
})

t.test('a file that cannot be read denies its agent everything, and is told like any other problem', async t => {
  const root = t.testdir()
  const { config, paths } = await openHome(root, {
    'agents/cut.toml': '[agent]\nname = "cu',
    'agents/other.toml': HERMES,
    'agents/twice.toml': '[agent]\nname = "twice"\n[mcp.servers.svc-admin]\nbuiltin = true\n[mcp.servers.svc-admin.tools]\nallow = ["a"]\ngated = ["b"]\nblocked = ["b", "a"]\n',
    'agents/far.toml': '[agent]\nname = "far"\n[mcp.servers.files]\nauth = { kind = "bearer-from-env" }\n',
    'agents/typo.toml': 'schema_version = 2\n[agent]\nname = "typo"\n[mcp.servers.x]\nbuiltin = true\ntool = { allow = ["a"] }\n',
    'agents/Mixed_Case.toml': HERMES,
    'agents/.hidden.toml': 'not ours'
  })
  symlinkSync('/nowhere', join(paths.etc, 'agents/gone.toml'))
  symlinkSync('other.toml', join(paths.etc, 'agents/linked.toml'))
  await config.reload()
  const told = shown(config.snapshot.diagnostics).join('\n')
  for (const part of [
    /agents\/cut\.toml {2}is not valid TOML/,
    /agents\/other\.toml agent\.name must be other, like the name of the file/,
    /agents\/twice\.toml mcp\.servers\.svc-admin\.tools\.blocked names b, which is also in gated/,
    /agents\/twice\.toml mcp\.servers\.svc-admin\.tools\.blocked names a, which is also in allow/,
    /agents\/far\.toml mcp\.servers\.files\.url is required for a server that is not builtin/,
    /agents\/far\.toml mcp\.servers\.files\.auth\.env is required for bearer-from-env/,
    /agents\/typo\.toml schema_version must be 1/,
    /agents\/typo\.toml mcp\.servers\.x\.tool .*did you mean tools\?/,
    /agents\/Mixed_Case\.toml {2}has an invalid agent name/,
    /agents\/gone\.toml {2}is a broken link/,
    /agents\/linked\.toml agent\.name must be linked/
  ]) t.match(told, part)
  t.notMatch(told, /hidden/)
  for (const agent of ['cut', 'other', 'twice', 'far', 'typo', 'mixed_case', 'Mixed_Case', 'gone', 'linked']) {
    t.equal(classifyTool(config.snapshot.agents, agent, 'admin', 'slot_list'), 'unknown_server', agent)
  }
})

t.test('a changed file counts at a reload; one that breaks keeps what it said; one that goes frees its agent', async t => {
  const { config, paths } = await openHome(t.testdir(), { 'agents/hermes.toml': HERMES })
  const files = createAgentFiles(config)
  const path = join(paths.etc, 'agents/hermes.toml')
  let changes = 0
  files.onChange(() => { changes++ })
  const says = (tool: string): string | null => files.classify('hermes', 'admin', tool)
  writeFileSync(path, HERMES.replace('"slot_load"', '"slot_load", "slot_delete"'))
  t.equal(says('slot_delete'), 'unknown_tool', 'nothing is watched')
  await config.reload()
  t.same([says('slot_delete'), changes], ['gated', 1])
  writeFileSync(path, 'what?')
  await config.reload()
  t.same([says('slot_delete'), config.snapshot.diagnostics.length], ['gated', 1])
  rmSync(path)
  await config.reload()
  t.equal(says('slot_delete'), null)
  t.same(config.snapshot.diagnostics, [])
  await config.patchSvc({ approvals: { never: ['slot_delete', 'files/read'] } })
  t.same([says('slot_delete'), files.classify('pi', 'files', 'read'), files.classify('pi', 'files', 'slot_delete'), says('read')], ['blocked', 'blocked', 'blocked', null], 'what nobody may')
})

t.test('a file in place of the folder of agents denies everybody', async t => {
  const { config } = await openHome(t.testdir(), { agents: 'not a folder' })
  t.match(shown(config.snapshot.diagnostics), [/^agents {2}cannot be listed/])
  t.equal(classifyTool(config.snapshot.agents, 'pi', 'admin', 'slot_list'), 'unknown_server')
})
