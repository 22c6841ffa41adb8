/*
 * Makes the bundle that ships, `dist/lib`, after the compiler has run: the gateway in a few files of plain code, which is
 * what `svc` starts. Tests run on what the compiler wrote, and so does everything else in a checkout that was not built.
 */

import { createHash } from 'node:crypto'
import { chmodSync, cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { rolldown, type Plugin } from 'rolldown'
import { parseAst } from 'rolldown/parseAst'
import { root } from '../repository.js'
import { bundledProgram, bundleFolder as out, isFresh } from './fresh.js'
import { lighterCode } from './lighter-code.js'
import { makeSchemasLate, type Chunk } from './late-schemas.js'

/** What the bundle is made of, beside packages: those that are native or load files of their own stay outside. */
const outside = /^(?:node:|(?:libsql|dockerode|node-llama-cpp|typescript|light-my-request|@fastify\/(?:ajv-compiler|fast-json-stringify-compiler))$)/

/** The gateway looks for the native part of its database itself. */
const outsideOfChunks = new RegExp(outside.source.replace('libsql|', ''))

/** Programs of their own: threads and child processes. */
const programs = [
  'kernel/host/watch/loop-watcher', 'kernel/models/gguf-worker', 'plugins/api/chat-templates/lint-child', 'plugins/api/services/responder-thread',
  'plugins/providers/llm-server/embedded/check-library', 'plugins/providers/llm-server/embedded/main', 'plugins/services/memory-engine/worker', 'plugins/services/pull/file/hash-worker',
  'plugins/services/updates/launcher/launch'
]
/** Files that lie beside the code that reads them. */
const data = ['plugins/api/install/bundles', 'plugins/providers/imagegen/workflows', 'plugins/services/updates/trust']

const define = { SVC_BUNDLED: 'true' }
const resolve = { extensionAlias: { '.js': ['.ts', '.js'] } }

async function makeBundle (): Promise<void> {
  rmSync(out, { recursive: true, force: true })
  const chunks = await makeChunks()
  await makePrograms()
  for (const folder of data) cpSync(join(root, folder), join(out, folder), { recursive: true })
  for (const name of ['plugin', 'testing']) {
    const entry = chunks.find(({ fileName }) => fileName === `${name}.cjs`)!
    writeFileSync(join(out, `${name}.js`), moduleOf(name, entry))
  }
  const build = createHash('sha256')
  for (const { code } of chunks) build.update(code)
  await makeStart(build.digest('hex').slice(0, 12))
}

/** The gateway and its command line, divided by what is loaded when. */
async function makeChunks (): Promise<readonly Chunk[]> {
  const bundle = await rolldown({
    input: { main: join(root, 'cli/main.ts'), plugin: join(root, 'kernel/contract/index.ts'), testing: join(root, 'kernel/testing/index.ts') },
    platform: 'node', external: outsideOfChunks, resolve, transform: { define }, plugins: [ownModules, ownPlaces, allAtOnce, ...lighter]
  })
  const { output } = await bundle.write({
    dir: out, format: 'cjs', entryFileNames: '[name].cjs', chunkFileNames: '[name].cjs', sourcemap: true, sourcemapExcludeSources: true,
    comments: false, plugins: [forLoader]
  })
  await bundle.close()
  const chunks = makeSchemasLate(output.filter(part => part.type === 'chunk'), 'zod.cjs')
    .map(({ fileName, exports, code }) => ({ fileName, exports, code: inAscii(code) }))
  // what the loader gives them; it reads, compiles and keeps them as they lie there
  const asFunction = (code: string): string => `(function (exports, require, module, __filename, __dirname, __load, __urlOf) {${code}\n})\n`
  for (const { fileName, code } of chunks) writeFileSync(join(out, fileName), asFunction(code))
  return chunks
}

/** The loader reads it byte for byte. V8 keeps a byte for each character of such a file, and two of one with any other. */
function inAscii (code: string): string {
  return code.replaceAll(/[\u0080-\uffff]/g, char => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** Plugins import the contract by its public name. */
const ownModules: Plugin = {
  name: 'own modules',
  resolveId: id => id === 'svc-gateway/plugin' ? join(root, 'kernel/contract/index.ts') : null
}

/** A chunk is no module, and its loader knows where things are. A program is one, and there is no loader. */
const ownPlaces: Plugin = {
  name: 'own places',
  transform: (code, id) => id.includes('node_modules') || !code.includes('import.meta.url') ? null
    : { code: code.replaceAll('import.meta.url', `__urlOf(${JSON.stringify(relative(root, id).replace(/\.ts$/, '.js'))})`), map: null }
}

/** A start loads all of the plugins that come with the gateway: one file is read faster than fifty. */
const allAtOnce: Plugin = {
  name: 'all plugins at once',
  transform: (code, id) => {
    if (id !== join(root, 'plugins/index.ts')) return null
    const paths: string[] = []
    const lazy = code.replaceAll(/import\('([^']+)'\)/g, (_, path: string) => `Promise.resolve(plugin${paths.push(path) - 1})`)
    return { code: paths.map((path, i) => `import * as plugin${i} from '${path}'\n`).join('') + lazy, map: null }
  }
}

/** Packages load all that they have. Those parts that are never called here are left out, or come with the first call. */
const lighter: readonly Plugin[] = [
  {
    name: 'undici when it is first used, without its mocks, caches, and the classes of the web',
    transform: function (code, id) {
      if (!id.endsWith('/undici/index.js')) {
        const [, names = ''] = id.includes('node_modules') ? [] : /^import (?!type)\{([^}]*)\} from 'undici'/m.exec(code) ?? []
        for (const name of names.split(',').map(text => text.trim()).filter(text => !text.startsWith('type '))) {
          if (name !== '' && undici[name] === undefined) this.error(`the bundle has no ${name} of undici: name it in test/bundle/bundle.ts`)
        }
        return null
      }
      const request = /^function makeDispatcher[^]*?^}$/m.exec(code)![0]
      return {
        code: `let called = null
const first = () => called ??= loaded()
function loaded () {
  const { InvalidArgumentError } = require('./lib/core/errors')
  const util = require('./lib/core/util')
  const api = require('./lib/api')
  const { getGlobalDispatcher } = require('./lib/global')
  Object.assign(require('./lib/dispatcher/dispatcher').prototype, api)
  ${request}
  return { request: makeDispatcher(api.request) }
}
module.exports = {
  get request () { return first().request },
  ${Object.entries(undici).filter(([name]) => name !== 'request').map(([name, from]) => `get ${name} () { first(); return ${from} }`).join(',\n  ')}
}
`, map: null
      }
    }
  },
  {
    // of those of the router few are ever called, and of zod's most check a file that is read once
    name: 'functions that are made out of text when they are needed',
    transform: (code, id) => {
      const changed = lighterCode(id, code)
      return changed === null ? null : { code: changed, map: null }
    }
  },
  {
    // awilix finds modules by patterns with it, which nothing here asks it for
    name: 'no search for files',
    resolveId: id => id === 'fast-glob' ? '\0fast-glob' : null,
    load: id => id === '\0fast-glob' ? 'module.exports = {}' : null
  }
]
/** What we import of it, and where that is. */
const undici: Readonly<Record<string, string>> = {
  Agent: 'require(\'./lib/dispatcher/agent\')',
  EnvHttpProxyAgent: 'require(\'./lib/dispatcher/env-http-proxy-agent\')',
  Pool: 'require(\'./lib/dispatcher/pool\')',
  buildConnector: 'require(\'./lib/core/connect\')',
  WebSocket: 'require(\'./lib/web/websocket/websocket\').WebSocket',
  errors: 'require(\'./lib/core/errors\')',
  fetch: 'require(\'./lib/web/fetch\').fetch',
  request: ''
}

/** The loader compiles a chunk as a function, where `import()` is its own. */
const forLoader: Plugin = {
  name: 'for the loader',
  renderChunk: code => {
    const places: number[] = []
    const visit = (node: unknown): void => {
      if (Array.isArray(node)) return node.forEach(visit)
      if (typeof node !== 'object' || node === null) return
      if ('type' in node && node.type === 'ImportExpression') places.push((node as unknown as { start: number }).start)
      Object.values(node).forEach(visit)
    }
    visit(parseAst(code))
    let text = code
    for (const at of places.toSorted((a, b) => b - a)) text = `${text.slice(0, at)}__load${text.slice(at + 'import'.length)}`
    return { code: text, map: null }
  }
}

async function makePrograms (): Promise<void> {
  for (const path of programs) {
    const bundle = await rolldown({
      input: join(root, `${path}.ts`), platform: 'node', external: outside, resolve, transform: { define }, plugins: [ownModules],
      // whoever takes a queue out of the contract has no use for its schemas
      treeshake: { moduleSideEffects: [{ test: /\/kernel\/contract\//, sideEffects: false }] }
    })
    const { output: [{ code }] } = await bundle.generate({ format: 'es', codeSplitting: false, comments: false })
    await bundle.close()
    const file = join(out, `${path}.js`)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, inAscii(code))
  }
}

/** What starts it all, and keeps what V8 made of the rest. */
async function makeStart (build: string): Promise<void> {
  const bundle = await rolldown({
    input: { svc: join(root, 'cli/bundle/svc.ts'), loader: join(root, 'cli/bundle/chunks.ts') },
    platform: 'node', external: /^node:/, resolve, transform: { define: { SVC_BUILD: JSON.stringify(build) } }
  })
  await bundle.write({ dir: out, format: 'cjs', entryFileNames: '[name].cjs', chunkFileNames: 'start-[name].cjs' })
  await bundle.close()
  chmodSync(bundledProgram, 0o755)
}

/** What `import` finds: the names of a chunk, so that a plugin and its gateway have one and the same. */
function moduleOf (name: string, { exports }: Chunk): string {
  return `import loader from './loader.cjs'\n\nexport const {\n  ${exports.toSorted().join(',\n  ')}\n} = loader.loadChunk('${name}.cjs')\n`
}

if (!isFresh()) await makeBundle()
