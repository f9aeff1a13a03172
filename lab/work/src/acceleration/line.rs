//! A straight line through points, by least squares.

/// A line: how it rises, and how far points are from it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Line {
    pub rise: f64,
    at_zero: f64,
    /// The largest distance of a point from the line.
    pub residual: f64,
}

impl Line {
    /// `None` if the points do not have two different places.
    pub fn through(points: &[(f64, f64)]) -> Option<Self> {
        let n = points.len() as f64;
        let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / n;
        let (x, y) = (mean(|point| point.0), mean(|point| point.1));
        let squares: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
        let products: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
        if squares <= 0.0 || squares.is_nan() {
            return None;
        }
        let rise = products / squares;
        let mut line = Self { rise, at_zero: y - rise * x, residual: 0.0 };
        let distances = points.iter().map(|point| (point.1 - line.at(point.0)).abs());
        line.residual = distances.fold(0.0, f64::max);
        Some(line)
    }

    /// Its height at `place`.
    pub fn at(&self, place: f64) -> f64 {
        self.at_zero + self.rise * place
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_goes_through_points_that_lie_on_one() {
        let line = Line::through(&[(1.0, 5.0), (2.0, 7.0), (4.0, 11.0)]).unwrap();
        assert!((line.rise - 2.0).abs() < 1e-12 && (line.at(0.0) - 3.0).abs() < 1e-12);
        assert!((line.at(1000.0) - 2003.0).abs() < 1e-9 && line.residual < 1e-12);
    }

    #[test]
    fn the_squares_of_the_distances_are_least() {
        // By hand: means 1 and 4/3; rise 1/2.
        let line = Line::through(&[(0.0, 1.0), (1.0, 1.0), (2.0, 2.0)]).unwrap();
        assert!((line.rise - 0.5).abs() < 1e-12 && (line.at(0.0) - 5.0 / 6.0).abs() < 1e-12);
        assert!((line.residual - 1.0 / 3.0).abs() < 1e-12);
        assert_eq!(Line::through(&[(1.0, 1.0), (1.0, 2.0)]), None);
        assert_eq!(Line::through(&[]), None);
    }
}
