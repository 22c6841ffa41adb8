import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join, relative, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'

interface ParsedConfig {
  readonly options: { readonly rootDir?: string, readonly outDir?: string }
  readonly fileNames: readonly string[]
}

interface Transpiled {
  readonly outputText: string
  readonly sourceMapText?: string
}

/** What is used of the TypeScript that a plugin is built with. */
interface TypeScript {
  readonly sys: { readonly readFile: unknown }
  readonly ModuleKind: { readonly ESNext: number }
  readonly ModuleResolutionKind: { readonly Bundler: number }
  readConfigFile (path: string, read: unknown): { readonly config?: unknown }
  parseJsonConfigFileContent (json: unknown, host: object, folder: string): ParsedConfig
  transpileModule (text: string, how: { readonly compilerOptions: object, readonly fileName: string }): Transpiled
}

/**
 * Writes the JavaScript of TypeScript files that changed at once, as the compiler does a little later, which looks at types
 * first. Both come to the same text.
 */
export class Transpiler {
  readonly #folder: string
  readonly #ts: TypeScript
  #seen: ReadonlyMap<string, number> | null = null

  private constructor (folder: string, ts: TypeScript) {
    this.#folder = folder
    this.#ts = ts
  }

  /** Null for a package that is not built by the compiler alone. */
  static async of (folder: string, build: string | undefined): Promise<Transpiler | null> {
    if (build === undefined || !/^tsc(?:\s+-(?:p|-project)\s+(?:\.|tsconfig\.json))?$/.test(build.trim())) return null
    try {
      const path = createRequire(join(folder, 'package.json')).resolve('typescript')
      const { default: ts } = await import(pathToFileURL(path).href) as { default: Partial<TypeScript> }
      const isKnown = [ts.readConfigFile, ts.parseJsonConfigFileContent, ts.transpileModule].every(each => typeof each === 'function') &&
        ts.ModuleKind !== undefined && ts.ModuleResolutionKind !== undefined
      return isKnown ? new Transpiler(folder, ts as TypeScript) : null
    } catch {
      // a package without TypeScript of its own is built by its scripts alone
      return null
    }
  }

  /** Looks for changes since the last time. What cannot be read or written is left to the compiler, which says why. */
  async update (): Promise<void> {
    const before = this.#seen
    const now = await stampsOf(this.#folder)
    this.#seen = now
    if (before === null) return
    const changed = [...now].filter(([path, time]) => before.get(path) !== time).map(([path]) => path)
    if (changed.length > 0) await this.#write(changed).catch(() => {})
  }

  async #write (paths: readonly string[]): Promise<void> {
    const { config } = this.#ts.readConfigFile(join(this.#folder, 'tsconfig.json'), this.#ts.sys.readFile)
    const { options, fileNames } = this.#ts.parseJsonConfigFileContent(config, this.#ts.sys, this.#folder)
    if (options.outDir === undefined || options.rootDir === undefined) return
    for (const path of paths) {
      if (!fileNames.some(name => resolve(name) === path)) continue
      const target = join(options.outDir, relative(options.rootDir, path)).replace(/ts$/, 'js')
      // of one file alone it cannot know that its package is one of ECMAScript modules, which every plugin is
      const { ModuleKind, ModuleResolutionKind } = this.#ts
      const compilerOptions = { ...options, module: ModuleKind.ESNext, moduleResolution: ModuleResolutionKind.Bundler }
      const { outputText, sourceMapText } = this.#ts.transpileModule(await readFile(path, 'utf8'), { compilerOptions, fileName: path })
      await mkdir(dirname(target), { recursive: true })
      // before the code: what is loaded once that is there takes both
      if (sourceMapText !== undefined) await writeFile(`${target}.map`, mapFor(target, path, sourceMapText))
      await writeFile(target, outputText)
    }
  }
}

/** Of one file alone the map names the source by its name only. */
function mapFor (target: string, source: string, text: string): string {
  return JSON.stringify({ ...JSON.parse(text) as object, sources: [relative(dirname(target), source)] })
}

/** When each source was changed, by its path. */
async function stampsOf (root: string): Promise<ReadonlyMap<string, number>> {
  const stamps = new Map<string, number>()
  const visit = async (folder: string): Promise<void> => {
    for (const entry of await readdir(folder, { withFileTypes: true }).catch(() => [])) {
      const path = join(folder, entry.name)
      if (entry.isDirectory()) {
        if (entry.name !== 'node_modules' && entry.name !== 'dist' && !entry.name.startsWith('.')) await visit(path)
      } else if (/\.[cm]?ts$/.test(entry.name) && !/\.d\.[cm]?ts$/.test(entry.name)) {
        const found = await stat(path).catch(() => null)
        if (found !== null) stamps.set(path, found.mtimeMs)
      }
    }
  }
  await visit(root)
  return stamps
}
