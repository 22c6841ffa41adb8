import { createHash } from 'node:crypto'
import { script } from './page-script.js'
import { style } from './page-style.js'

/** The whole page: nothing is loaded but openapi.json from beside it, so it works offline and behind a path prefix. */
export const page = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>svc API</title>
<link rel="icon" href="data:,">
<style>${style}</style>
</head>
<body>
<header>
<h1>API</h1>
<span id="notice" role="status">Reading <a href="openapi.json">openapi.json</a> …</span>
</header>
<div class="page">
<div class="find">
<label for="search">Find a route</label>
<input id="search" type="search" autocomplete="off">
</div>
<main><p id="nothing" hidden>No route has these words.</p><div id="operations"></div></main>
<nav aria-label="Groups">
<ul id="groups"></ul>
<a href="openapi.json">openapi.json</a>
</nav>
</div>
<noscript><p>This page needs JavaScript; <a href="openapi.json">openapi.json</a> holds the same.</p></noscript>
<script>${script}</script>
</body>
</html>
`

/** Runs this script, applies this style, reads from here, and nothing else. */
export const contentPolicy = [
  'default-src \'none\'',
  `script-src '${hashOf(script)}'`,
  `style-src '${hashOf(style)}'`,
  'connect-src \'self\'',
  'img-src data:',
  'base-uri \'none\'',
  'form-action \'none\'',
  'frame-ancestors \'none\''
].join('; ')

function hashOf (text: string): string {
  return `sha256-${createHash('sha256').update(text).digest('base64')}`
}
