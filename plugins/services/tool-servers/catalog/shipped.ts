import type { CatalogItem } from '../ref.js'

/** What the release offers to install, until `svc mcp catalog refresh` brings more. */
export const shippedCatalog: readonly CatalogItem[] = [
  item('filesystem', 'Filesystem', 'Model Context Protocol', 'Read, write and search files below folders that you name as arguments', 'files', 'npm:@modelcontextprotocol/server-filesystem', 'https://github.com/modelcontextprotocol/servers'),
  item('knowledge-graph', 'Knowledge graph memory', 'Model Context Protocol', 'Entities and relations that are kept in a file', 'memory', 'npm:@modelcontextprotocol/server-memory', 'https://github.com/modelcontextprotocol/servers'),
  item('sequential-thinking', 'Sequential thinking', 'Model Context Protocol', 'A scratch pad for step by step reasoning', 'reasoning', 'npm:@modelcontextprotocol/server-sequential-thinking', 'https://github.com/modelcontextprotocol/servers'),
  item('everything', 'Everything', 'Model Context Protocol', 'Every feature of the protocol once, for trying things out', 'development', 'npm:@modelcontextprotocol/server-everything', 'https://github.com/modelcontextprotocol/servers'),
  item('fetch', 'Fetch', 'Model Context Protocol', 'Fetch web pages as Markdown', 'web', 'uvx:mcp-server-fetch', 'https://github.com/modelcontextprotocol/servers'),
  item('git', 'Git', 'Model Context Protocol', 'Read, search and change Git repositories', 'development', 'uvx:mcp-server-git', 'https://github.com/modelcontextprotocol/servers'),
  item('time', 'Time', 'Model Context Protocol', 'The time, and conversions between time zones', 'data', 'uvx:mcp-server-time', 'https://github.com/modelcontextprotocol/servers'),
  item('playwright', 'Playwright', 'Microsoft', 'Drive a browser by its accessibility tree', 'web', 'npm:@playwright/mcp', 'https://github.com/microsoft/playwright-mcp'),
  item('context7', 'Context7', 'Upstash', 'Current documentation of libraries', 'development', 'npm:@upstash/context7-mcp', 'https://github.com/upstash/context7'),
  item('github', 'GitHub', 'GitHub', 'Repositories, issues and pull requests; bind GITHUB_PERSONAL_ACCESS_TOKEN', 'development', 'oci://ghcr.io/github/github-mcp-server', 'https://github.com/github/github-mcp-server')
]

function item (
  id: string, name: string, author: string, description: string, category: string, spec: string, homepage: string
): CatalogItem {
  return { id, name, author, verified: true, description, category, spec, homepage }
}
