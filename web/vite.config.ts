import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vite'

const agent = process.env.GPUWARDEN_DEV_AGENT ?? 'http://127.0.0.1:4780'
const here = fileURLToPath(new URL('.', import.meta.url))

/** The web UI, built into dist/web; the agent serves that folder. `npx vite web` serves it for development, with an agent on 4780. */
export default defineConfig({
  root: here,
  publicDir: 'public',
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    outDir: fileURLToPath(new URL('../dist/web', import.meta.url)),
    emptyOutDir: true,
    target: 'es2022',
    // A font or picture inside the style would need data: addresses; files of their own are cached apart.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    rolldownOptions: {
      // Tables of the recording format that no page uses stay out: the modules of core only define.
      treeshake: { moduleSideEffects: (id) => !id.includes('/src/core/') },
      input: { index: `${here}index.html`, sw: `${here}src/service-worker.ts` },
      output: { entryFileNames: (chunk) => (chunk.name === 'sw' ? 'sw.js' : 'assets/[name]-[hash].js') },
    },
  },
  server: { proxy: { '/api': agent, '/metrics': agent, '/openapi.json': agent } },
})
