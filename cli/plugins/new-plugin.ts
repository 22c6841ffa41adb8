import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { PLUGIN_NAME_PATTERN } from '../../kernel/contract/schemas/names.js'
import { packageRoot } from '../../kernel/config/package-root.js'
import type { Cli } from '../cli.js'
import { CliFailure, usageFailure } from '../failure.js'
import { linkGateway } from './gateway-link.js'
import { runNpm } from '../npm.js'
import type { TemplateKind } from './template-kinds.js'

interface Template {
  /** Paths of its files below the new package, with what they hold. */
  readonly files: ReadonlyMap<string, string>
}

/** Not part of a template, even where it was built in place. */
const BUILT = new Set(['node_modules', 'dist', 'package-lock.json', '.gitignore'])
const IGNORED = 'node_modules/\ndist/\n*.tgz\n'
/** The engine program has a function of this name and knows nothing of plugins. */
const ENGINE_PROGRAM = 'src/engine.ts'

/** Writes a package for a plugin, and installs what it is built with. */
export async function newPlugin (cli: Cli, text: string, kind: TemplateKind, install: boolean): Promise<void> {
  const folder = resolve(cli.process.cwd(), text)
  const name = basename(folder).replace(/^svc-plugin-/, '')
  if (!PLUGIN_NAME_PATTERN.test(name)) {
    throw usageFailure(`'${name}' cannot be the name of a plugin`, ['Give the folder a name such as my-engine: lower case letters, digits and hyphens.'])
  }
  if ((await readdir(folder).catch(() => [])).length > 0) {
    throw new CliFailure(`${folder} already exists and is not empty; nothing was written`, { hints: ['Name a new folder.'] })
  }
  const { files } = await readTemplate(kind)
  for (const [path, content] of files) {
    const target = join(folder, path.replace(/\bexample\b/, name))
    await mkdir(dirname(target), { recursive: true })
    await writeFile(target, named(path, content, kind, name))
  }
  await writeFile(join(folder, '.gitignore'), IGNORED)
  cli.out.line(`Plugin ${name} is written to ${folder}, a plugin of kind ${kind}.`)
  if (install) {
    cli.out.note('Installing its build dependencies ...')
    await runNpm({ folder, env: cli.env, signal: cli.signal }, 'install', ['--no-audit', '--no-fund', '--loglevel=error'])
  }
  await linkGateway(folder)
  const shown = relative(cli.process.cwd(), folder) || '.'
  cli.out.line(`Load it, and reload it on each change: svc plugin dev ${shown}`)
  cli.out.line(`Test it with: cd ${shown} && ${install ? '' : 'npm install && svc plugin link && '}npm run build && npm test`)
  if (kind === 'tools') cli.out.line(`Agents call its tools at /mcp/${name} of the gateway it is loaded into.`)
}

async function readTemplate (kind: TemplateKind): Promise<Template> {
  const root = join(packageRoot, 'plugin-template')
  if (kind === 'engine') return { files: await filesBelow(root, new Set([...BUILT, 'kinds'])) }
  const [files, config, page] = await Promise.all([
    filesBelow(join(root, 'kinds', kind), BUILT),
    readFile(join(root, 'tsconfig.json'), 'utf8'),
    readFile(join(root, 'kinds', 'README.md'), 'utf8')
  ])
  return { files: new Map([...files, ['tsconfig.json', config], ['README.md', readme(kind, page)]]) }
}

async function filesBelow (root: string, skipped: ReadonlySet<string>): Promise<Map<string, string>> {
  const found = new Map<string, string>()
  const visit = async (below: string): Promise<void> => {
    for (const entry of await readdir(join(root, below), { withFileTypes: true })) {
      if (skipped.has(entry.name) || entry.name.endsWith('.tgz')) continue
      const path = join(below, entry.name)
      if (entry.isDirectory()) await visit(path)
      else found.set(path, await readFile(join(root, path), 'utf8'))
    }
  }
  await visit('')
  return found
}

/** The template with the plugin's own name, and without links to files that are not beside it. */
function named (path: string, content: string, kind: TemplateKind, name: string): string {
  if (kind !== 'engine') return content.replaceAll(/\bexample\b/g, name)
  const own = path === ENGINE_PROGRAM ? content : content.replaceAll(/\bespeak\b(?!-ng)/g, name)
  return path === 'README.md' ? own.replaceAll(/\[([^\]]+)\]\((?:\.\.|kinds)\/[^)]*\)/g, '$1') : own
}

/** The section about this kind. */
function readme (kind: TemplateKind, page: string): string {
  const titles: Readonly<Record<TemplateKind, string>> = { engine: '', routes: 'Routes, state, events and timers', service: 'A service', tools: 'A tool' }
  const section = page.split(/^## /m).find(part => part.startsWith(titles[kind])) ?? ''
  const text = section.slice(titles[kind].length).trim().replace(/\[`[^`]*(src\/[^`]+)`\]\([^)]*\)/, '`$1`')
  return `# svc-plugin-example\n\nA plugin for the svc gateway.\n\n${text}\n\n\`\`\`sh\nsvc plugin dev .\n\`\`\`\n\nbuilds it, loads it into a gateway and reloads it on each change. \`npm run build && npm test\` tests it. \`npm install\` runs \`svc plugin link\` if \`svc\` is on PATH: npm removes the link to the gateway.\n`
}
