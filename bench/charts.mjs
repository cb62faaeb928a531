// Draws the chart of a run: time against size, both logarithmic, a line for each way and peer.
//
//   node bench/charts.mjs FOLDER      draws FOLDER/sizes.svg from FOLDER/bench.json

import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { LineChart } from 'echarts/charts'
import { GridComponent, LegendComponent, TitleComponent } from 'echarts/components'
import * as echarts from 'echarts/core'
import { SVGRenderer } from 'echarts/renderers'

// Only what the chart is made of, since the package's program is bundled with it.
echarts.use([LineChart, GridComponent, LegendComponent, TitleComponent, SVGRenderer])

/** Colours that are told apart without red and green; cugather's own are the strong ones. */
const STYLES = {
  'cugather, resident': ['#0050b0', 'solid', 3],
  'cugather, upload': ['#3399ff', 'solid', 3],
  'cugather, pinned source': ['#7aa6e0', 'dashed', 3],
  'cugather, cpu': ['#66c2d9', 'solid', 3],
  'PyTorch, resident': ['#d95f02', 'solid', 1.5],
  'PyTorch, host source': ['#d95f02', 'dashed', 1.5],
  'CuPy, resident': ['#7a3b96', 'solid', 1.5],
  numpy: ['#888888', 'solid', 1.5],
  'JavaScript loop': ['#444444', 'dotted', 1.5],
  'floor of the bus': ['#000000', 'dashed', 1],
}

const UNITS = [
  [2 ** 20, ' Mi'],
  [2 ** 10, ' Ki'],
]
const size = (value) => {
  const [unit, name] = UNITS.find(([each]) => value >= each) ?? [1, '']
  return `${value / unit}${name}`
}
const time = (ms) => (ms < 1 ? `${+(ms * 1000).toPrecision(2)} µs` : `${+ms.toPrecision(3)} ms`)

/** The chart of a report as SVG. */
export function drawChart({ machine, options, series }) {
  const names = Object.keys(STYLES).filter((name) => series[name])
  const sizes = [...new Set(names.flatMap((name) => series[name].map(([at]) => at)))]
  const chart = echarts.init(null, null, { renderer: 'svg', ssr: true, width: 900, height: 560 })
  chart.setOption({
    animation: false,
    backgroundColor: '#ffffff',
    title: {
      text: `Gathering random float32 out of ${size(options.source)}`,
      subtext: `${machine.gpu ?? 'no GPU'}; ${machine.cores} cores; medians of whole calls; lower is better`,
      left: 'center',
    },
    legend: { bottom: 0, data: names },
    grid: { left: 70, right: 30, top: 70, bottom: 100 },
    xAxis: {
      type: 'category',
      name: 'indices',
      nameLocation: 'middle',
      nameGap: 28,
      data: sizes.sort((a, b) => a - b).map(size),
    },
    yAxis: { type: 'log', name: 'time of a call', axisLabel: { formatter: time } },
    series: names.map((name) => {
      const [color, type, width] = STYLES[name]
      return {
        name,
        type: 'line',
        color,
        symbolSize: name.startsWith('floor') ? 0 : 5,
        lineStyle: { type, width },
        data: series[name].map(([at, ms]) => [size(at), ms]),
      }
    }),
  })
  const svg = chart.renderToSVGString()
  // Its timers would keep the process alive.
  chart.dispose()
  return svg
}

// Not where it is bundled into another program.
if (process.argv[1]?.endsWith('charts.mjs')) {
  const folder = process.argv[2]
  if (!folder) {
    console.error('node bench/charts.mjs FOLDER')
    process.exit(2)
  }
  const report = JSON.parse(readFileSync(path.join(folder, 'bench.json'), 'utf8'))
  writeFileSync(path.join(folder, 'sizes.svg'), drawChart(report))
}
