import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'
import t from 'tap'
import { tempWriters } from '../kernel/config/files/written-folders.js'
import { svcConfigSchema } from '../kernel/contract/index.js'
import { documents, root, sources } from './repository.js'

/** Layers of the kernel: a file imports from its own rank or a lower one. */
const ranks: ReadonlyArray<readonly string[]> = [
  ['contract', 'async', 'sqlite'], ['config'], ['events', 'jobs', 'state', 'hardware', 'models'], ['runtime'], ['slots'], ['dispatch'], ['http'], ['tools'], ['host'],
  ['.'], ['testing']
]
const rankOf = new Map(ranks.flatMap((folders, rank) => folders.map(folder => [folder, rank] as const)))

/** Parts of the CLI that may start or open a kernel: `serve`, and what has to work while no gateway runs. */
const offline = [/^cli\/serve\//, /^cli\/plugins\/offline-home\.ts$/, /^cli\/setup\/offline/, /^cli\/offline\//]

interface Import { readonly from: string, readonly spec: string, readonly isType: boolean }

const product = sources('kernel', 'plugins', 'cli')
const imports: readonly Import[] = product.flatMap(({ path, text }) => [
  ...[...text.matchAll(/^(?:import|export)\s+(type\s)?(?:[^'"]*?\sfrom\s+)?'([^']+)'/gm)].map(([, type, spec]) => ({ from: path, spec: spec!, isType: type !== undefined })),
  ...[...text.matchAll(/\bimport\(\s*'([^']+)'\s*\)/g)].map(([, spec]) => ({ from: path, spec: spec!, isType: false }))
])
const target = ({ from, spec }: Import): string => posix.join(dirname(from), spec).replace(/\.js$/, '.ts')
const isLocal = ({ spec }: Import): boolean => spec.startsWith('.')
const packageJson = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Record<string, Record<string, string>>
const packages = new Set([...Object.keys(packageJson.dependencies!), ...Object.keys(packageJson.peerDependencies!)])

t.test('the scan sees the imports', async t => {
  t.ok(imports.length > 500, `${imports.length} imports`)
  const paths = new Set(product.map(({ path }) => path))
  t.strictSame(imports.filter(entry => isLocal(entry) && entry.spec.endsWith('.js') && !paths.has(target(entry))), [], 'all of them lead somewhere')
})

t.test('kernel: no layer imports one to its right', async t => {
  const layer = (path: string): string => path.split('/').length === 2 ? '.' : path.split('/')[1]!
  const own = imports.filter(({ from }) => from.startsWith('kernel/')).filter(isLocal).map(entry => ({ from: entry.from, to: target(entry) }))
  t.ok(own.length > 500, `${own.length} imports`)
  t.strictSame(own.filter(({ from, to }) => !to.startsWith('kernel/') || !(rankOf.get(layer(to))! <= rankOf.get(layer(from))!))
    .map(({ from, to }) => `${from} -> ${to}`), [])
})

/**
 * What the files of a room may import of the house that the room is in: rooms above it in the table, and the files beside
 * the rooms that are named. The other files beside the rooms put all of it together.
 */
const rooms: Readonly<Record<string, readonly string[]>> = {
  'kernel/config/files': [],
  'kernel/config/toml': ['files'],
  'kernel/config/parts': [],
  'kernel/config/check': ['files', 'toml', 'parts'],
  'kernel/config/schema': ['toml', 'check'],
  'kernel/config/migrations': ['toml'],
  'kernel/config/load': ['files', 'toml', 'parts', 'check', 'schema', 'migrations'],
  'kernel/config/write': ['files', 'toml', 'parts', 'check', 'schema', 'migrations', 'load', 'snapshot.ts'],
  'kernel/contract/text': [],
  'kernel/contract/errors': ['text', 'brand.ts'],
  'kernel/contract/schemas': [],
  'kernel/contract/http': ['errors', 'brand.ts', 'logger.ts', 'surface-names.ts', 'tool.ts'],
  'kernel/contract/provider': ['errors', 'schemas', 'http', 'text', 'brand.ts', 'surface-names.ts'],
  'kernel/contract/services': ['errors', 'schemas', 'http', 'provider', 'surface-names.ts', 'tool.ts'],
  'kernel/contract/services/config': ['models.ts'],
  'kernel/contract/services/slots': ['config', 'requests.ts'],
  'kernel/contract/agent': ['schemas', 'services', 'brand.ts'],
  'kernel/contract/plugin': ['errors', 'schemas', 'http', 'provider', 'services', 'agent', 'brand.ts', 'logger.ts', 'tool.ts'],
  'kernel/runtime/image': [],
  'kernel/runtime/device': [],
  'kernel/runtime/docker': ['image', 'exit-ledger.ts', 'port-check.ts'],
  'kernel/runtime/process': ['port-check.ts'],
  'kernel/runtime/programs': [],
  'kernel/dispatch/requests': [],
  'kernel/dispatch/body': [],
  'kernel/dispatch/wire': [],
  'kernel/dispatch/answer': ['requests'],
  'kernel/dispatch/upstream': ['requests', 'wire', 'answer'],
  'kernel/dispatch/route': ['body', 'upstream'],
  'kernel/dispatch/call': ['requests', 'body', 'answer', 'upstream', 'route', 'wire'],
  'kernel/dispatch/upload': ['requests', 'body', 'answer', 'upstream', 'route', 'call'],
  'kernel/slots/schedule': [],
  'kernel/slots/plan': ['schedule'],
  'kernel/slots/plan/argv': ['profile-provider.ts'],
  'kernel/slots/plan/profile': ['argv', 'profile-provider.ts'],
  'kernel/slots/plan/launch': ['argv', 'effective-slot.ts'],
  'kernel/slots/plan/context': [],
  'kernel/slots/shadows': ['schedule'],
  'kernel/slots/write': ['schedule', 'plan', 'shadows'],
  'kernel/slots/gpu': [],
  'kernel/slots/life': ['schedule', 'plan', 'shadows', 'gpu'],
  'kernel/slots/life/engine': [],
  'kernel/slots/life/watch': [],
  'kernel/slots/life/kept': [],
  'kernel/slots/replicas': ['schedule', 'life'],
  'kernel/http/body': [],
  'kernel/http/guard': [],
  'kernel/http/openapi': [],
  'kernel/http/server': [],
  'kernel/http/stream': [],
  'kernel/host/record': [],
  'kernel/host/packages': ['record'],
  'kernel/host/watch': ['record', 'packages'],
  'kernel/host/mount': ['record', 'watch'],
  'kernel/host/start': ['record', 'watch', 'mount'],
  'kernel/host/reload': ['record', 'mount', 'start'],
  'plugins/api/slots/record': [],
  'plugins/api/slots/log': ['record', 'ref.ts'],
  'plugins/v1/realtime/sound': ['errors.ts'],
  'plugins/v1/responses/kept': ['dialect.ts', 'errors.ts', 'ids.ts', 'last-event.ts', 'schemas.ts'],
  'plugins/v1/responses/socket': ['kept', 'answering.ts', 'chat-request.ts', 'compaction.ts', 'dialect.ts', 'errors.ts', 'ids.ts', 'last-event.ts'],
  'plugins/services/pull/file': ['errors.ts'],
  'plugins/services/pull/engine': ['file', 'errors.ts', 'pull-work.ts', 'ref.ts'],
  'plugins/services/pull/hub': ['file', 'errors.ts', 'pull-run.ts', 'pull-work.ts', 'record.ts', 'ref.ts', 'settings.ts'],
  'plugins/services/agents/builtin': [],
  'plugins/services/agents/skills': [],
  'plugins/services/agents/book': ['errors.ts', 'known-agents.ts', 'ref.ts'],
  'plugins/services/agents/home': ['book', 'errors.ts', 'known-agents.ts', 'ref.ts'],
  'plugins/services/agents/provision': ['book', 'home', 'errors.ts', 'ref.ts'],
  'cli/client': ['failure.ts', 'own-command.ts'],
  'cli/terminal': ['client', 'cli.ts', 'failure.ts', 'own-command.ts'],
  'cli/record': ['client', 'terminal'],
  'cli/pull': ['client', 'terminal', 'cli.ts', 'failure.ts'],
  'cli/agent': ['client', 'record', 'cli.ts'],
  'cli/completion': ['client', 'record'],
  'cli/unit': ['client', 'cli.ts', 'failure.ts', 'program-file.ts'],
  'cli/chat': ['client', 'terminal', 'cli.ts', 'failure.ts'],
  'cli/offline': ['client', 'terminal', 'record', 'pull', 'unit', 'cli.ts', 'config-files.ts', 'failure.ts', 'npm.ts',
    'program-file.ts', 'reload-plan.ts', 'version.ts'],
  'cli/serve': ['client', 'terminal', 'record', 'unit', 'chat', 'offline', 'cli.ts', 'failure.ts', 'program-file.ts',
    'version.ts'],
  'cli/plugins': ['client', 'terminal', 'record', 'offline', 'serve', 'cli.ts', 'failure.ts', 'npm.ts'],
  'cli/setup': ['client', 'terminal', 'record', 'pull', 'agent', 'offline', 'serve', 'cli.ts', 'failure.ts'],
  'cli/commands': ['client', 'terminal', 'record', 'pull', 'agent', 'completion', 'unit', 'chat', 'offline', 'serve', 'plugins',
    'setup', 'cli.ts', 'config-files.ts', 'envelope-file.ts', 'failure.ts', 'option-value.ts', 'program-path.ts', 'reload-plan.ts'],
  'cli/bundle': ['heap-flags.ts', 'lost-output.ts', 'main.ts', 'quiet-heap.ts']
}
const allRooms = Object.keys(rooms)

t.test('a room imports the rooms that it stands on, and nothing that stands beside the rooms', async t => {
  /** What of the house it is, if it is not in the room: another room, or a file beside them. */
  const elsewhere = (path: string, room: string): string | null => {
    const house = `${dirname(room)}/`
    return path.startsWith(house) && !path.startsWith(`${room}/`) ? path.slice(house.length).split('/')[0]! : null
  }
  const across = imports.filter(isLocal).flatMap(entry => allRooms.filter(room => entry.from.startsWith(`${room}/`)).flatMap(room => {
    const other = elsewhere(target(entry), room)
    return other === null ? [] : [{ room, other, what: `${entry.from} -> ${target(entry)}` }]
  }))
  t.ok(across.length > 200, `${across.length} imports`)
  t.strictSame(across.filter(({ room, other }) => !rooms[room]!.includes(other)).map(({ what }) => what), [])
  const below = allRooms.flatMap((room, at) => rooms[room]!.filter(other => !other.endsWith('.ts') && !allRooms.slice(0, at).includes(`${dirname(room)}/${other}`))
    .map(other => `${room} ${other}`))
  t.strictSame(below, [], 'a room stands on those above it in the table')
  const folders = [...new Set(allRooms.map(dirname))].flatMap(house => readdirSync(join(root, house), { withFileTypes: true })
    .filter(entry => entry.isDirectory()).map(({ name }) => `${house}/${name}`))
  t.strictSame(folders.toSorted(), allRooms.toSorted(), 'every room has its row')
  const used = new Set(across.map(({ room, other }) => `${room} ${other}`))
  t.strictSame(Object.entries(rooms).flatMap(([room, others]) => others.map(other => `${room} ${other}`)).filter(each => !used.has(each)), [],
    'and may import no more than it does')
})

/** Writers with temporary files of their own making, and who removes what they leave. */
const ownTempWriters: Readonly<Record<string, string>> = {
  'kernel/runtime/process/process-log.ts': 'one name for each log: the next rotation overwrites it',
  'kernel/runtime/process/process-record.ts': 'one name for each record: the next write takes it',
  'plugins/api/images/cache.ts': 'the cache itself, when it is opened',
  'plugins/services/pull/file/part-file.ts': 'plugins/services/pull/file/staging.ts, at the start',
  'plugins/services/tool-servers/catalog/catalog.ts': 'one name: the next refresh overwrites it',
  'plugins/services/pull/hub/plan.ts': 'the same',
  'cli/offline/layout/migrate-layout.ts': 'the command ends with an error that names what it left',
  'plugins/services/updates/launcher/switch-file.ts': 'the next write of the same file, which begins with it'
}

t.test('whoever writes through temporary files stands in the list of those whose leavings are swept', async t => {
  const others = product.filter(({ path }) => !/\/(atomic-file|process-identity)\.ts$/.test(path) && !path.startsWith('kernel/testing/'))
  const through = others.filter(({ text }) => /\b(writeFileAtomic|uniqueToken) ?\(/.test(text)).map(({ path }) => path)
  t.strictSame(through.toSorted(), Object.keys(tempWriters).toSorted(), 'kernel/config/files/written-folders.ts names them, and the folders')
  const own = others.filter(({ path, text }) => !through.includes(path) && /\.tmp`/.test(text)).map(({ path }) => path)
  t.strictSame(own.toSorted(), Object.keys(ownTempWriters).toSorted(), 'and those with names of their own')
})

t.test('the contract needs node, zod and types only', async t => {
  const outside = imports.filter(entry => entry.from.startsWith('kernel/contract/') && !isLocal(entry))
    .filter(({ spec }) => !/^(node:|zod$)/.test(spec)).map(({ from, spec, isType }) => `${from} -> ${isType ? 'type of ' : ''}${spec}`)
  t.strictSame(outside.toSorted(), ['kernel/contract/http/route.ts -> type of fastify', 'kernel/contract/plugin/context.ts -> type of fastify'],
    'and names what a plugin mounts routes on')
})

t.test('plugins: the contract, packages that are declared, and their own folder', async t => {
  const isAllowed = (entry: Import): boolean => {
    const own = entry.from.split('/').slice(0, 3).join('/')
    if (isLocal(entry)) return target(entry).startsWith(`${own}/`) || /^plugins\/[^/]+\/[^/]+\/(?:ref|settings)\.ts$/.test(target(entry))
    const name = entry.spec.startsWith('@') ? entry.spec.split('/').slice(0, 2).join('/') : entry.spec.split('/')[0]!
    return entry.spec === 'svc-gateway/plugin' || entry.spec.startsWith('node:') || packages.has(name)
  }
  const ofPlugins = imports.filter(({ from }) => /^plugins\/[^/]+\/[^/]+\//.test(from))
  t.ok(ofPlugins.length > 500, `${ofPlugins.length} imports`)
  t.strictSame(ofPlugins.filter(entry => !isAllowed(entry)).map(({ from, spec }) => `${from} -> ${spec}`), [])
})

t.test('cli: contract only, but for what starts a gateway or works without one', async t => {
  const isAllowed = (to: string): boolean =>
    to.startsWith('cli/') || to.startsWith('kernel/contract/') || ['kernel/version.ts', 'kernel/config/package-root.ts'].includes(to) ||
    /^plugins\/[^/]+\/(?:[^/]+\/)?words\.ts$/.test(to)
  const ofCli = imports.filter(({ from }) => from.startsWith('cli/')).filter(isLocal)
  t.ok(ofCli.length > 200, `${ofCli.length} imports`)
  t.strictSame(ofCli.filter(entry => !isAllowed(target(entry)) && !offline.some(pattern => pattern.test(entry.from)))
    .map(entry => `${entry.from} -> ${target(entry)}`), [])
})

t.test('a table of svc.toml stands in the row of its plugin too, so that it is known while the plugin is off', async t => {
  const rows = product.find(({ path }) => path === 'plugins/index.ts')!.text
  const listed = [...rows.matchAll(/name: '([\w-]+)', settings: (\w+)/g)].map(([, name, table]) => `${name} ${table}`)
  const owned = product.filter(({ path }) => /^plugins\/[^/]+\/[^/]+\/index\.ts$/.test(path)).flatMap(({ text }) => {
    const [, name] = /definePlugin\(\{\n {2}name: '([\w-]+)'/.exec(text) ?? []
    return [...text.matchAll(/^ {2}settings: (\w+),$/gm)].map(([, table]) => `${name} ${table}`)
  })
  t.strictSame(listed, owned)
  t.ok(owned.length > 0)
})

t.test('plugins open their databases through the contract; a thread of its own brings the driver along', async t => {
  t.strictSame(imports.filter(({ from, spec }) => from.startsWith('plugins/') && spec === 'libsql').map(({ from }) => from),
    ['plugins/services/memory-engine/store/open.ts'])
})

t.test('words.ts of a plugin, which commands may read, loads nothing but other words', async t => {
  const loaded = imports.filter(({ from }) => /^plugins\/[^/]+\/(?:[^/]+\/)?words\.ts$/.test(from)).map(({ spec }) => spec)
  t.strictSame(loaded.filter(spec => !spec.endsWith('/words.js')), [])
})

t.test('nothing that ships imports the testing tools', async t => {
  const shipping = imports.filter(({ from }) => !from.startsWith('kernel/testing/'))
  t.strictSame(shipping.filter(entry => /^(kernel\/testing\/|svc-gateway\/testing)/.test(isLocal(entry) ? target(entry) : entry.spec)).map(({ from }) => from), [])
})

t.test('no files import each other in a circle, types included', async t => {
  const edges = new Map<string, string[]>()
  for (const entry of imports.filter(isLocal)) {
    edges.set(entry.from, [...edges.get(entry.from) ?? [], target(entry)])
  }
  const done = new Set<string>()
  const circles: string[] = []
  const visit = (path: string, way: readonly string[]): void => {
    if (way.includes(path)) return void circles.push([...way.slice(way.indexOf(path)), path].join(' -> '))
    if (done.has(path)) return
    for (const next of edges.get(path) ?? []) visit(next, [...way, path])
    done.add(path)
  }
  for (const path of edges.keys()) visit(path, [])
  t.strictSame(circles, [])
  t.ok(done.size > 100)
})

/** Makers' names of what providers and services run, besides the names of the providers themselves. */
const productNames = [
  'flm', 'FastFlowLM', 'XDNA2', 'ComfyUI', 'Kokoro', 'Moonshine', 'Qwen3-?TTS', 'llama-server', 'llama\\.?cpp', 'whisper\\.?cpp', 'whisper-server',
  'speaches', 'node-llama-cpp', 'Open ?WebUI', 'OpenRouter', 'DeepSeek', 'MiniMax', 'Ollama', 'Google AI Studio',
  'Hindsight', 'Cognee', 'Hermes', 'Codex', 'OpenCode', 'claude-code', 'Open-WebUI'
]

t.test('the kernel names no provider and no product, in code, in texts and in comments', async t => {
  // the short name of a device, which slot records show
  const enums = 'kernel/contract/schemas/enums.ts'
  const own = readdirSync(join(root, 'plugins/providers')).filter(name => name !== 'words.ts')
  t.ok(own.length >= 6, own.join())
  const names = new RegExp(`(?<![\\w-])(${[...own, ...productNames].join('|')})(?![\\w-])`, 'i')
  const naming = product.filter(({ path }) => path.startsWith('kernel/') && path !== enums)
    .flatMap(({ path, text }) => text.split('\n').flatMap(line => names.exec(line)?.[1] ?? []).map(name => `${path}: ${name}`))
  t.strictSame(naming, [], 'an engine says itself what is to be known of it')
  const [, ...others] = product.find(({ path }) => path === enums)!.text.split('\n').filter(line => names.test(line))
  t.strictSame(others, [], 'and the enums have one')
})

t.test('the kernel names no file and no table of svc.toml that a plugin owns', async t => {
  const ofPlugins = product.filter(({ path }) => path.startsWith('plugins/'))
  // those of agents are below the user's home
  const files = ofPlugins.filter(({ path }) => !path.startsWith('plugins/services/agents/'))
    .flatMap(({ text }) => [...text.matchAll(/(?:file: |FILE = )'([a-z][a-z0-9-]*\.toml)'/g)].map(([, file]) => file!))
  t.strictSame(files.toSorted(), ['capabilities.toml', 'personas.toml', 'prices.toml', 'stacks.toml'])
  const tables = ofPlugins.flatMap(({ text }) => [...text.matchAll(/: SettingsTable<[^=]*= \{\s*name: '([a-z]+)'/g)].map(([, table]) => table!))
    .filter(table => !Object.hasOwn(svcConfigSchema.shape, table))
  t.strictSame(tables, ['dialects', 'images', 'memory', 'telemetry'])
  const owned = new RegExp([...files.map(file => file.replace('.', '\\.')), ...tables.map(table => `\\bsvc\\.${table}\\b|'\\[${table}\\]`)].join('|'))
  const naming = product.filter(({ path }) => path.startsWith('kernel/')).flatMap(({ path, text }) => owned.exec(text)?.map(word => `${path}: ${word}`) ?? [])
  t.strictSame(naming, [])
})

t.test('the command line names no engine: it asks the gateway, or the words of a plugin', async t => {
  const engines = [...readdirSync(join(root, 'plugins/providers')).filter(name => !['remote-catalog', 'words.ts'].includes(name)),
    ...productNames.slice(0, productNames.indexOf('OpenRouter'))]
  const names = new RegExp(`(?<![\\w-])(${engines.join('|')})(?![\\w-])`, 'i')
  const naming = product.filter(({ path }) => path.startsWith('cli/')).flatMap(({ path, text }) => text.split('\n')
    .filter(line => !line.startsWith('import ')).flatMap(line => names.exec(line)?.[1] ?? []).map(name => `${path}: ${name}`))
  t.strictSame(naming, [])
})

/**
 * Who reads the wall clock, and what for. It may be set at any moment: what it tells is shown, stored, or compared with
 * other wall times (of files, of a remote party). Durations are differences of `clock.monotonic()` or `performance.now()`,
 * and a moment that is measured and shown is kept on the monotonic clock and shown through `WallTime`.
 */
const wallTime: Readonly<Record<string, 'shown' | 'stored' | 'compared' | 'clock'>> = {
  'cli/bundle/code-cache.ts': 'compared',
  'cli/terminal/watch.ts': 'shown',
  'kernel/config/store.ts': 'compared',
  'kernel/dispatch/route/catalog.ts': 'shown',
  'kernel/dispatch/call/judged-once.ts': 'compared',
  'kernel/dispatch/call/slot-trips.ts': 'shown',
  'kernel/dispatch/upstream/upstream-pool.ts': 'shown',
  'kernel/dispatch/call/upstream-trip.ts': 'compared',
  'kernel/dispatch/requests/throughput-history.ts': 'shown',
  'kernel/host/watch/plugin-logs.ts': 'shown',
  'kernel/events/activity-log.ts': 'stored',
  'kernel/kernel-services.ts': 'compared',
  'kernel/events/event-bus.ts': 'shown',
  'kernel/gateway.ts': 'shown',
  'kernel/hardware/hardware-monitor.ts': 'shown',
  'kernel/hardware/probe.ts': 'shown',
  'kernel/jobs/job-store.ts': 'stored',
  'kernel/runtime/process/process-engine.ts': 'stored',
  'kernel/slots/life/kept/slot-journal.ts': 'stored',
  'kernel/state/approval-table.ts': 'stored',
  'kernel/state/file-lock.ts': 'compared',
  'kernel/state/home-lock.ts': 'compared',
  'kernel/state/migrations/migrate.ts': 'stored',
  'kernel/state/system-clock.ts': 'clock',
  'kernel/state/wall-time.ts': 'clock',
  'plugins/api/backends/backend-view.ts': 'compared',
  'plugins/api/mcp/mcp-api.ts': 'compared',
  'plugins/api/mcp/server-routes.ts': 'stored',
  'plugins/api/images/cache.ts': 'stored',
  'plugins/api/profiles/envelope-routes.ts': 'stored',
  'plugins/api/slots/slot-usage.ts': 'compared',
  'plugins/api/stacks/envelope-routes.ts': 'stored',
  'plugins/api/stacks/stack-runner.ts': 'stored',
  'plugins/dialects/ollama/talk/answer.ts': 'shown',
  'plugins/dialects/ollama/library-routes.ts': 'shown',
  'plugins/providers/imagegen/outputs.ts': 'compared',
  'plugins/providers/imagegen/render.ts': 'shown',
  'plugins/providers/llm-server/embedded/log.ts': 'shown',
  'plugins/providers/llm-server/embedded/status-routes.ts': 'shown',
  'plugins/providers/llm-server/embedded/text-routes.ts': 'shown',
  'plugins/v1/realtime/index.ts': 'shown',
  'plugins/v1/realtime/serve.ts': 'shown',
  'plugins/runtimes/kubernetes/api/credentials.ts': 'compared',
  'plugins/services/agent-budgets/budgets.ts': 'stored',
  'plugins/services/agents/book/agent-book.ts': 'stored',
  'plugins/services/agents/provision/phase-log.ts': 'shown',
  'plugins/services/approvals/deadlines.ts': 'compared',
  'plugins/api/agent-chat/cookie.ts': 'stored',
  'plugins/services/board/index.ts': 'stored',
  'plugins/services/hub/transport.ts': 'compared',
  'plugins/services/library/library.ts': 'stored',
  'plugins/v1/batches/batch-run.ts': 'compared',
  'plugins/v1/batches/batches.ts': 'stored',
  'plugins/v1/files/store.ts': 'stored',
  'plugins/v1/infill/fill-in-middle.ts': 'shown',
  'plugins/v1/scores/score.ts': 'shown',
  'plugins/services/memory/notes/notes.ts': 'stored',
  'plugins/services/pull/pull-task.ts': 'stored',
  'plugins/services/pull/pulls.ts': 'compared',
  'plugins/services/tool-servers/server-log.ts': 'shown',
  'plugins/services/updates/job-files.ts': 'shown',
  'plugins/services/memory-engine/store/clock.ts': 'stored',
  'kernel/dispatch/answer/event-edits.ts': 'shown',
  'plugins/v1/omni/plain-answer.ts': 'shown',
  'plugins/v1/over-messages/ref.ts': 'shown',
  'plugins/v1/responses/over-chat.ts': 'shown',
  'plugins/v1/responses/compaction.ts': 'shown',
  'plugins/v1/responses/answering.ts': 'stored',
  'plugins/v1/responses/socket/prepared-turn.ts': 'stored',
  'plugins/v1/responses/socket/turn.ts': 'shown',
  'plugins/v1/responses/kept/conversation-routes.ts': 'stored',
  'plugins/v1/responses/kept/kept-file.ts': 'compared'
}

t.test('the wall clock is read where times are shown or stored, and measures nothing', async t => {
  const reads = /\bDate\.now\(\)|\bnew Date\(\)|[cC]lock\.now\(\)/
  const readers = product.filter(({ path, text }) => !path.startsWith('kernel/testing/') && reads.test(text)).map(({ path }) => path)
  t.strictSame(readers.filter(path => wallTime[path] === undefined), [],
    'a duration is measured with clock.monotonic(); a file that shows or stores a time goes into the table above')
  t.strictSame(Object.keys(wallTime).filter(path => !readers.includes(path)), [], 'and the table has no others')
})

t.test('work goes one after the other in a SerialQueue, and nobody chains promises for that by hand', async t => {
  const chained = /this\.#(\w+)\.then\([^]*?this\.#\1 = \w+(?:\.catch\(|\n)|this\.#(\w+) = this\.#\2\.then\(|\b(\w+) = \3\.then\(/
  t.strictSame(product.filter(({ text }) => chained.test(text)).map(({ path }) => path), ['kernel/async/serial-queue.ts'])
})

t.test('AbortSignal.timeout is handed on at once and alone, else it is within: of one that AbortSignal.any holds, the timeout may never come', async t => {
  const alone = /(?:, |\(|signal: )AbortSignal\.timeout\(\w+\)(?!\])/g
  const mixed = /AbortSignal\.any\([^)]*AbortSignal\.timeout\(/
  t.strictSame(product.filter(({ text }) => mixed.test(text) || text.replaceAll(alone, '').includes('AbortSignal.timeout')).map(({ path }) => path), [])
})

t.test('those that wait for the next change of something wait at Changes, and nobody keeps a list of them by hand', async t => {
  const byHand = /readonly promise: Promise<void>|of this\.#\w+\.splice\(0\)\) \w+\(\)/
  const keepers = product.filter(({ text }) => byHand.test(text)).map(({ path }) => path)
  t.strictSame(keepers.filter(path => !path.startsWith('kernel/async/')), ['kernel/dispatch/requests/active-requests.ts', 'plugins/v1/realtime/outbox.ts'],
    'but for two at which none leaves before its turn')
})

t.test('a file has one noun', async t => {
  const lengths = product.map(({ path, text }) => ({ path, lines: text.split('\n').length }))
  t.strictSame(lengths.filter(({ lines }) => lines > 400).map(({ path, lines }) => `${path} has ${lines} lines`), [])
  t.strictSame(product.map(({ path }) => path).filter(path => /\b(utils?|helpers?|common|misc)\b/.test(path)), [])
})

t.test('a folder of the product has at most 25 sources', async t => {
  const folders = new Map<string, number>()
  for (const { path } of product) folders.set(dirname(path), (folders.get(dirname(path)) ?? 0) + 1)
  t.strictSame([...folders].filter(([, count]) => count > 25).map(([folder, count]) => `${folder} has ${count}`), [], 'the next noun is a folder of its own')
})

t.test('the name of a test says in a sentence what it shows', async t => {
  const named = sources('test', 'plugin-template').filter(({ path }) => /\.(?:test|ring)\.ts$/.test(path)).flatMap(({ path, text }) =>
    [...text.matchAll(/^( *)(?:await |return )?(?:t\.)?test\((['`])((?:\\.|(?!\2)[^\\])*)\2/gm)]
      .map(([, indent, , name]) => ({ path, isNested: indent !== '', name: name! })))
  const shorterThan = (words: number, of: typeof named): string[] =>
    of.filter(({ name }) => name.split(' ').length < words).map(({ path, name }) => `${path}: ${name}`)
  const whole = named.filter(({ isNested }) => !isNested)
  t.ok(whole.length > 1000, `${whole.length} tests`)
  t.strictSame(shorterThan(5, whole), [], 'at least five words')
  // a name with a value in it is that of a row of a table
  const nested = named.filter(({ isNested, name }) => isNested && !name.includes('${'))
  t.ok(nested.length > 400, `${nested.length} nested tests`)
  t.strictSame(shorterThan(4, nested), [], 'at least four words, which go on from the name of the test around it')
})

t.test('no comment and no README cites a document that is not in the repository', async t => {
  const all = documents()
  const numbered = new RegExp([String.raw`\bDESIGN \d`, String.raw`\b(?:[Rr]eference|[Mm]anagement|[Ii]ssue) #?\d+(?:\.\d|\)|$)`, 'texts (?:were|are) silent', String.raw`\b(?:of|as) the reference\b`].join('|'), 'm')
  const written = [...sources('kernel', 'plugins', 'cli', 'test', 'plugin-template'), ...all]
  const citing = written.flatMap(({ path, text }) => {
    const said = path.endsWith('.md') ? text : text.split('\n').filter(line => /^\s*(\/?\*|\/\/)/.test(line)).join('\n')
    const named = [...said.matchAll(/\b(?<file>[\w-]+\.md)\b/g)].map(({ groups }) => groups!.file!)
    const absent = named.filter(name => !all.some(({ path: known }) => known.split('/').at(-1) === name))
    const beside = [...said.matchAll(/See (README)\.md|\b(README|design)(?:\.md)? of this folder/g)].map(([, see, of]) => `${see ?? of!}.md`)
      .filter(name => !existsSync(join(root, dirname(path), name)))
    return [...absent, ...beside, ...numbered.exec(said) ?? []].map(what => `${path}: ${what}`)
  })
  t.strictSame(citing, [], 'say the fact itself, or name a README of this repository')
  const links = all.flatMap(({ path, text }) => [...text.matchAll(/\]\((?!https?:|#|mailto:)([^)#\s]+)/g)].map(([, to]) => ({ path, to: to! })))
  t.ok(links.length > 50, `${links.length} links`)
  t.strictSame(links.filter(({ path, to }) => !existsSync(join(root, dirname(path), to))), [], 'every link leads somewhere')
})

t.test('every source file that a README names is in the repository', async t => {
  const all = sources('kernel', 'plugins', 'cli', 'test', 'plugin-template').map(({ path }) => path)
  // the kernel's documents name each other's files from the kernel's folder
  const from = (path: string): readonly string[] => [dirname(path), '.', path.split('/')[0]!]
  const named = documents().flatMap(({ path, text }) =>
    [...text.matchAll(/`((?:[\w.-]+\/)*[\w.-]+\.ts)`/g)].map(([, file]) => ({ path, file: file! })))
  t.ok(named.length > 50, `${named.length} files are named`)
  t.strictSame(named.filter(({ path, file }) => file.includes('/')
    ? !from(path).some(folder => existsSync(join(root, folder, file)))
    : !all.some(known => known.endsWith(`/${file}`))), [], 'moved or renamed')
})

t.test('tables of READMEs have a row for each ring and each group of routes', async t => {
  const rowsOf = (path: string): readonly string[] =>
    [...readFileSync(join(root, path), 'utf8').matchAll(/^\| \[?`([\w-]+)`/gm)].map(([, name]) => name!)
  const rings = readdirSync(join(root, 'test/rings')).filter(name => name.endsWith('.ring.ts')).map(name => name.replace('.ring.ts', ''))
  const groups = readdirSync(join(root, 'plugins/api'), { withFileTypes: true }).filter(entry => entry.isDirectory()).map(({ name }) => name)
  t.ok(rings.length > 20 && groups.length > 20, `${rings.length} rings, ${groups.length} groups`)
  const [told, listed] = [rowsOf('test/README.md'), rowsOf('plugins/api/README.md')]
  t.strictSame([...rings.filter(name => !told.includes(name)), ...groups.filter(name => !listed.includes(name))], [])
})

t.test('the top level has only what belongs there', async t => {
  const allowed = [
    'package.json', 'tsconfig.json', 'kernel', 'plugins', 'cli', 'test', 'plugin-template', 'deploy', 'README.md', 'package-lock.json',
    'eslint.config.js', '.ci', '.github', '.gitignore', 'LICENSE', '.git', 'node_modules', 'dist', '.svc', '.tap', '.npmrc'
  ]
  t.strictSame(readdirSync(root).filter(name => !allowed.includes(name)), [])
})
