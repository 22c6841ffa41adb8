import { described, descriptor, type Files } from './author-home.js'

export interface Mistake {
  readonly name: string
  readonly files: Files
  readonly manifest?: object
  /** What the command line says of it: the file, the line where there is one, and the mend. */
  readonly says: RegExp
}

export const head = 'import { core, createServiceRef, definePlugin, defineProvider, defineRoute } from \'svc-gateway/plugin\'\n'
export const plugin = (name: string, register: string, more = '', kind = 'routes'): string =>
  `${head}export default definePlugin({ name: '${name}', kind: '${kind}', apiVersion: 1, ${more}\nregister (ctx) {\n${register}\n} })\n`
/** As a compiler leaves it: each line of the code comes from the line ten further down in a source. */
export const built = (code: string): Files => ({
  'index.js': `${code}//# sourceMappingURL=index.js.map\n`,
  'index.js.map': JSON.stringify({ version: 3, sources: ['src/index.ts'], names: [], mappings: `AAUA${';AACA'.repeat(code.split('\n').length)}` })
})
export const route = (url: string): string => `ctx.addRoute(defineRoute({ method: 'GET', url: '${url}', summary: 'x', handler: () => ({ ok: true }) }))`

/** Seen when a package is added. */
export const addedMistakes: readonly Mistake[] = [
  { name: 'bad JSON', files: { 'package.json': '{\n  "name": "x",\n  "version": "1.0.0"\n  "type": "module"\n}\n' }, says: /package\.json:4: it is not valid JSON/ },
  { name: 'another contract', files: {}, manifest: { svc: { apiVersion: 2, kind: 'routes' } }, says: /written for version 2 of the plugin contract; this gateway has version 1; take a version of the package.*\(package\.json:1\)/ },
  { name: 'not built', files: {}, manifest: { exports: './dist/index.js' }, says: /package\.json: the entry dist\/index\.js does not exist; run `npm run build`/ },
  { name: 'built code throws', files: built(plugin('throws-built', 'throw new Error(\'boom\')')), says: /at register: src\/index\.ts:14: boom/ },
  { name: 'a descriptor key', files: { 'engine.toml': descriptor('badkey', 'devises = ["cpu"]') }, manifest: described, says: /engine\.toml: devises .*did you mean.*devices.*\(line 7\)/ },
  { name: 'a scope\'s route that is taken', files: { 'index.js': plugin('scoped', 'ctx.configureScope(app => { app.get(\'/api/slots\', () => 1) })') }, says: /index\.js:4: GET \/api\/slots belongs to plugin 'api-slots'/ },
  { name: 'too new', files: {}, manifest: { peerDependencies: { 'svc-gateway': '>=2' } }, says: /needs svc-gateway >=2 .*and this is svc-gateway 0\.\d+\.\d+; take a version of the package.*\(package\.json:1\)/ },
  { name: 'too old', files: {}, manifest: { peerDependencies: { 'svc-gateway': '<0.0.5' } }, says: /needs svc-gateway <0\.0\.5 .*and this is svc-gateway 0\.\d+\.\d+/ }
]

/** Found in the home at a reload. */
export const linkedMistakes: readonly Mistake[] = [
  { name: 'no default export', files: { 'index.js': 'export const a = 1\n' }, says: /there is no default export; write `export default definePlugin/ },
  { name: 'a plain object', files: { 'index.js': 'export default { name: "x" }\n' }, says: /it is a plain object; write `export default definePlugin/ },
  { name: 'a function', files: { 'index.js': 'export default () => {}\n' }, says: /it is a function; write .* the function is its `register`/ },
  { name: 'a TypeScript entry', files: { 'src/index.ts': 'export default 1 as number\n' }, manifest: { exports: './src/index.ts' }, says: /src\/index\.ts: it is TypeScript: build first \(npm run build\), and point the entry/ },
  { name: 'register throws', files: { 'index.js': plugin('throws', 'throw new Error(\'boom\')') }, says: /index\.js:4: boom/ },
  { name: 'built code imports what is not there', files: built('import \'some-missing-package\'\n'), says: /src\/index\.ts:11: it imports the package/ },
  { name: 'a syntax error', files: { 'index.js': 'import \'./other.js\'\n', 'other.js': 'export const a = {\n  b: 1 2\n}\n' }, says: /other\.js:2: Unexpected number/ },
  { name: 'a name that is taken', files: { 'index.js': plugin('api-slots', '') }, says: /index\.js:2: plugin 'api-slots' already exists; give it another name/ },
  { name: 'an undeclared dependency', files: { 'index.js': 'import \'fs\'\nimport \'some-missing-package\'\n' }, says: /index\.js:2: it imports the package 'some-missing-package', .* declare it in "dependencies"/ },
  { name: 'a placeholder', files: { 'engine.toml': descriptor('badplace', '', '["./engine.mjs", "{prt}"]') }, manifest: described, says: /engine\.toml: process\.1 .*prt.*did you mean.*port.*\(line 3\)/ },
  { name: 'a route that is taken', files: { 'index.js': plugin('collides', route('/api/slots')) }, says: /index\.js:4: GET \/api\/slots belongs to plugin 'api-slots'; choose another URL/ },
  { name: 'a schema that is none', files: { 'index.js': plugin('schema', '', 'configSchema: {},') }, says: /index\.js:2: its configSchema is not a zod schema/ },
  { name: 'a database that is none', files: { 'index.js': plugin('database', '', 'databases: [{ path: \'x.db\' }],') }, says: /index\.js:2: `databases` holds something without the functions `path` and `upgrade`/ },
  { name: 'a route schema that is none', files: { 'index.js': plugin('route-schema', 'ctx.addRoute(defineRoute({ method: \'POST\', url: \'/api/test/schema\', summary: \'x\', schema: { body: {} }, handler: () => ({}) }))') }, says: /index\.js:4: schema\.body of POST \/api\/test\/schema is not a zod schema/ },
  { name: 'a misspelt service', files: { 'index.js': plugin('core-slot', '', '\nrequires: { slots: core.slot },') }, says: /index\.js:3: core has no service 'slot'; did you mean core\.slots\?/ },
  { name: 'a method of another kind', files: { 'index.js': plugin('other-kind', 'ctx.addProvider({})') }, says: /index\.js:4: kind 'routes' has no addProvider; kinds that have it: 'provider'/ }
]
