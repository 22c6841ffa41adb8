import { execFile } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { accessFiles } from '../../unit/access-files.js'
import { JOB_NAME, MARK, runsHome, UNIT_NAME } from '../../unit/gateway-unit.js'
import { shellLines } from './shell-lines.js'
import { fileThing, isMarked, merged, removeEmpty, removeTree, targetOfLink, type Found, type Thing } from './thing.js'

type Env = Readonly<Record<string, string | undefined>>

/** Where the system's files are looked for; a test has a folder of its own, in which no init system is asked. */
export interface SystemPlace {
  /** Empty is the real one. */
  readonly root: string
  readonly env: Env
}

export interface GatewayUnitFound {
  readonly file: string
  readonly text: string
}

const isMac = process.platform === 'darwin'
const COMPLETION = 'completion of svc for'
/** Of the gateway's announcements, as its own folder of them has it. */
const ANNOUNCEMENT = /^svc-addon-[a-z][a-z0-9-]*\.service$/
/** What `svc service install` says of the user that it makes. */
const GECOS = 'svc gateway'

/** The unit of the gateway on this home; null where there is none that is ours. */
export async function unitOf ({ root }: SystemPlace, home: string | null): Promise<GatewayUnitFound | null> {
  const file = join(root, isMac ? `/Library/LaunchDaemons/${JOB_NAME}.plist` : `/etc/systemd/system/${UNIT_NAME}`)
  const text = await readFile(file, 'utf8').catch(() => null)
  return text !== null && await isMarked(file, MARK) === true && runsHome(text, home) ? { file, text } : null
}

/** The unit with its drop-ins, and stopping what it started before anything else. */
export async function unitFiles (place: SystemPlace, unit: GatewayUnitFound, stopped: () => Promise<void>): Promise<Found> {
  const { root } = place
  const name = isMac ? JOB_NAME : UNIT_NAME
  // where no init system answers there is nothing that it could have started
  const ask = async (...words: readonly [string, ...string[]]): Promise<void> => {
    if (root === '') await runProgram(words[0], words.slice(1)).catch(() => undefined)
  }
  const dropIns = await readdir(`${unit.file}.d`).catch(() => [])
  return {
    things: [
      {
        kind: 'service',
        name: `${name}, which is stopped first`,
        remove: async () => {
          if (isMac) await ask('launchctl', 'bootout', `system/${JOB_NAME}`)
          else await ask('systemctl', 'disable', '--now', UNIT_NAME)
          await stopped()
        }
      },
      ...await wantedBy(unit),
      ...dropIns.map(each => fileThing('file', join(`${unit.file}.d`, each))),
      {
        kind: 'file',
        name: unit.file,
        remove: async () => {
          await removeEmpty(`${unit.file}.d`).catch(() => undefined)
          await removeTree(unit.file)
          if (!isMac) await ask('systemctl', 'daemon-reload')
        }
      }
    ],
    kept: []
  }
}

/** The link by which it starts with the machine: `disable` takes it away only where systemctl is. */
async function wantedBy ({ file }: GatewayUnitFound): Promise<readonly Thing[]> {
  const link = join(dirname(file), 'multi-user.target.wants', UNIT_NAME)
  return await targetOfLink(link) === null ? [] : [fileThing('file', link)]
}

/** Rules, announcements and completions: what has our mark, and what has not is left alone. */
export async function markedFiles ({ root, env }: SystemPlace, avahi: string | null, purge: boolean): Promise<Found> {
  const announced = avahi ?? join(root, '/etc/avahi/services')
  const homes = await homesOf(root, env)
  const completions = [
    '/etc/bash_completion.d/svc', '/usr/share/bash-completion/completions/svc', '/usr/local/share/bash-completion/completions/svc',
    '/usr/share/zsh/site-functions/_svc', '/usr/local/share/zsh/site-functions/_svc', '/usr/share/zsh/vendor-completions/_svc',
    '/etc/fish/completions/svc.fish', '/usr/share/fish/vendor_completions.d/svc.fish'
  ].map(path => join(root, path))
  const own = homes.flatMap(home => [join(home, '.config/fish/completions/svc.fish'), join(home, '.local/share/bash-completion/completions/svc')])
  const services = (await readdir(announced).catch(() => [])).filter(name => ANNOUNCEMENT.test(name)).map(name => fileThing('file', join(announced, name)))
  return merged(
    await marked(accessFiles.map(path => join(root, path)), MARK),
    { things: services, kept: [] },
    await marked([...completions, ...own], COMPLETION),
    ...await Promise.all(homes.map(shellLines)),
    { things: await codeCaches(homes, env), kept: [] },
    // it says who the user is, so it goes with that one
    purge ? await marked([join(root, '/etc/sysusers.d/svc.conf')], MARK) : { things: [], kept: [] }
  )
}

/** What commands keep of the compiled program, in the cache folder of who called them. */
async function codeCaches (homes: readonly string[], { XDG_CACHE_HOME: named }: Env): Promise<readonly Thing[]> {
  const folders = [...named === undefined ? [] : [named], ...homes.map(home => join(home, '.cache'))].map(cache => join(cache, 'svc/code'))
  const are = await Promise.all(folders.map(folder => readdir(folder).then(() => true, () => false)))
  return folders.filter((_, i) => are[i]).map(folder => ({
    kind: 'file',
    name: folder,
    remove: async () => {
      await removeTree(folder)
      await removeEmpty(dirname(folder)).catch(() => undefined)
    }
  }))
}

/** A home of its own has nothing else outside of it. A caller without HOME has no cache. */
export async function callersCaches (env: Env): Promise<Found> {
  return { things: await codeCaches(env.HOME === undefined ? [] : [env.HOME], env), kept: [] }
}

/** Of who runs this, and of who called sudo. */
async function homesOf (root: string, { HOME: home = root === '' ? homedir() : '', SUDO_USER: caller = '' }: Env): Promise<readonly string[]> {
  const text = caller === '' ? '' : await readFile(join(root, '/etc/passwd'), 'utf8').catch(() => '')
  const callers = text.split('\n').map(line => line.split(':')).find(([name]) => name === caller)?.[5] ?? ''
  return [...new Set([home, callers === '' ? '' : join(root, callers)])].filter(each => each !== '')
}

/** The user that `svc service install` made, and its group. Another one of that name stays. */
export async function systemUser ({ root }: SystemPlace): Promise<readonly Thing[]> {
  if (isMac) return []
  const text = await readFile(join(root, '/etc/passwd'), 'utf8').catch(() => '')
  const users = text.split('\n').map(line => line.split(':')).filter(([, , , , gecos]) => gecos === GECOS)
  return users.map(([name]) => ({
    kind: 'user', name: name!, remove: () => runProgram('userdel', [...root === '' ? [] : ['--prefix', root], name!])
  }))
}

/** Folder of the trees of releases that a unit starts its launcher in; null for another kind of installation. */
export function releasesOf ({ text }: GatewayUnitFound): string | null {
  const [, launcher] = /(\/[^\s"<]*\/launch\.mjs)/.exec(text) ?? []
  return launcher === undefined ? null : dirname(launcher)
}

async function marked (paths: readonly string[], mark: string): Promise<Found> {
  const found = await Promise.all(paths.map(async path => ({ path, isOurs: await isMarked(path, mark) })))
  return {
    things: found.filter(({ isOurs }) => isOurs === true).map(({ path }) => fileThing('file', path)),
    kept: found.filter(({ isOurs }) => isOurs === false).map(({ path }) => ({ name: path, why: 'svc did not write it' }))
  }
}

function runProgram (command: string, args: readonly string[]): Promise<void> {
  return new Promise((resolve, reject) => {
    execFile(command, args, { timeout: 180_000 }, (error, _stdout, stderr) => {
      if (error === null) resolve()
      else reject(new Error(stderr.trim().split('\n').at(-1) || error.message))
    })
  })
}
