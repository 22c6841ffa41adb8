/** What is replaced in files of packages, each with the same outcome. */
const compiled: Readonly<Record<string, ReadonlyArray<readonly [from: string, to: string]>>> = {
  '/find-my-way/lib/node.js': [['if (prefix.length >= LONG_PREFIX_MIN_LENGTH) {', 'if (prefix.length < LONG_PREFIX_MIN_LENGTH) {\n    return (path, i) => path.startsWith(prefix, i)\n  } else {']],
  '/find-my-way/lib/handler-storage.js': [
    ['_createParamsObject: this._compileCreateParamsObject(params)', `_createParamsObject: (...values) => {
        handlerObject._createParamsObject = this._compileCreateParamsObject(params)
        return handlerObject._createParamsObject(...values)
      }`],
    ['this._compileGetHandlerMatchingConstraints(constrainer, constraints)', `this._getHandlerMatchingConstraints = derived => {
        this._compileGetHandlerMatchingConstraints(constrainer, constraints)
        return this._getHandlerMatchingConstraints(derived)
      }`]
  ],
  // which C library is there it asks of a report on the whole process; the part that was installed for another cannot be loaded.
  // It is looked for from the package, which package managers put where only the package finds it
  '/libsql/index.js': [
    ['const { load, currentTarget } = require("@neon-rs/load");\nconst { familySync, GLIBC, MUSL } = require("detect-libc");', ''],
    ['function requireNative() {', `function requireNative() {
  const { createRequire } = require('node:module');
  const own = createRequire(createRequire(__filename).resolve('libsql'));
  if (process.platform === 'linux' && ['x64', 'arm64'].includes(process.arch) && !process.env.LIBSQL_JS_DEV) {
    for (const libc of ['gnu', 'musl']) {
      try {
        return own(\`@libsql/linux-\${process.arch}-\${libc}\`);
      } catch {
        // the package's own search says what is missing
      }
    }
  }
  const { load, currentTarget } = own('@neon-rs/load');
  const { familySync, GLIBC, MUSL } = own('detect-libc');`],
    ['return load(__dirname)', 'return load(require(\'node:path\').dirname(own.resolve(\'libsql\')))'],
    ['return require(`@libsql/${target}`)', 'return own(`@libsql/${target}`)']
  ],
  // HTTP/2 is loaded by the first connection that speaks it; the clock is the global one
  '/fastify/lib/server.js': [['const http2 = require(\'node:http2\')', `const http2 = {
      get createServer () { return require('node:http2').createServer },
      get createSecureServer () { return require('node:http2').createSecureServer }
    }`]],
  '/undici/lib/dispatcher/client.js': [['const connectH2 = require(\'./client-h2.js\')', 'const connectH2 = (...args) => require(\'./client-h2.js\')(...args)']],
  // each route takes its settings in a plugin of its own, and its hooks in a listener of its own, of which there are a thousand
  // then: those that are declared in a row share them, in the same order
  '/fastify/lib/route.js': [
    ['let avvio\n', `let avvio
  let row = null
  let prepared = null
  const afterRoutes = (server, set) => {
    const { queue } = avvio._current[0]
    if (row !== null && row.server === server && row.queue === queue && row.length === queue.length()) {
      row.sets.push(set)
      return
    }
    const sets = [set]
    server.after((notHandledErr, done) => {
      if (row !== null && row.sets === sets) row = null
      for (const each of sets) each()
      done(notHandledErr)
    })
    row = { server, queue, length: queue.length(), sets }
  }
  const beforeReady = prepare => {
    if (prepared === null) {
      const all = prepared = []
      avvio.once('preReady', () => {
        for (const each of all) each()
      })
    }
    prepared.push(prepare)
  }
`],
    ['this.after((notHandledErr, done) => {', 'afterRoutes(this, () => {'],
    ['avvio.once(\'preReady\', () => {\n          for (const hook of lifecycleHooks)', 'beforeReady(() => {\n          for (const hook of lifecycleHooks)'],
    ['        done(notHandledErr)\n', '']
  ],
  '/fastify/lib/logger-factory.js': [['const { performance } = require(\'node:perf_hooks\')', '']],
  '/undici/lib/web/fetch/util.js': [['const { performance } = require(\'node:perf_hooks\')', '']],
  '/zod/v4/core/schemas.js': [['if (!fastpass)\n                fastpass = generateFastpass(def.shape);', `if (!fastpass) {
                inst._zod.checked = (inst._zod.checked ?? 0) + 1;
                if (inst._zod.checked < 4) return superParse(payload, ctx);
                fastpass = generateFastpass(def.shape);
            }`]]
}

/** The code of a file with what is replaced in it; null where that is nothing. Throws when the file is not as it was. */
export function lighterCode (file: string, code: string): string | null {
  const [, changes] = Object.entries(compiled).find(([name]) => file.endsWith(name)) ?? []
  if (changes === undefined) return null
  for (const [from, to] of changes) {
    if (!code.includes(from)) throw new Error(`${file} has changed: see to it in test/bundle/lighter-code.ts`)
    code = code.replace(from, () => to)
  }
  return code
}
